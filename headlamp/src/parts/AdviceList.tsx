import type { GPUJobStatusAdvice } from '../kinds/types.ts';
import { Command } from './Command.tsx';

/** What to change about a job, the most important first, with the line that does it. */
export function AdviceList({ advice }: { advice: readonly GPUJobStatusAdvice[] }) {
  return (
    <>
      {advice.map(({ rule, message, command }) => (
        <div key={rule}>
          <p>
            <b>{rule}</b>: {message}
          </p>
          {command && <Command line={command} />}
        </div>
      ))}
    </>
  );
}
