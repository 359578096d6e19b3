import type { ReactNode } from 'react';

import { Command } from './Copy.tsx';

interface Props {
  words: ReactNode;
  help?: ReactNode;
  command?: string;
}

/** Nothing is there, or it cannot be shown: a sentence, and a way out. */
export function State({ words, help, command }: Props) {
  return (
    <div className="state">
      <p>{words}</p>
      {help !== undefined && <p>{help}</p>}
      {command && <Command line={command} />}
    </div>
  );
}
