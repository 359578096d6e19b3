import { Command } from './Command.tsx';

interface Props {
  readonly words: string;
  readonly help?: string;
  readonly command?: string;
}

/** A list is empty: a sentence, and what would fill it. */
export function Nothing({ words, help, command }: Props) {
  return (
    <div>
      <p>{words}</p>
      {help && <p>{help}</p>}
      {command && <Command line={command} />}
    </div>
  );
}
