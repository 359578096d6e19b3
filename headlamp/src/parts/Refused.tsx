import type { Refusal } from '../read/refusal.ts';
import { Command } from './Command.tsx';

/** Why there is nothing to see, and a way out. */
export function Refused({ refusal: { words, help, command } }: { refusal: Refusal }) {
  return (
    <div role="alert">
      <p className="lead">{words}</p>
      {help && <p>{help}</p>}
      {command && <Command line={command} />}
    </div>
  );
}
