import type { PartRow } from '../api/views.ts';
import { gpus } from '../format/number.ts';
import { stateWords } from '../format/state.ts';
import { Mark } from './Mark.tsx';

/** Where all GPUs are: parts that add up to all of them, named beneath with their numbers. */
export function Strip({ parts, idleSeconds }: { parts: readonly PartRow[]; idleSeconds: number }) {
  const shown = parts.filter((part) => part.gpus > 0);
  return (
    <>
      <div className="strip" aria-hidden="true">
        {shown.map((part) => (
          <div
            key={part.state}
            data-state={part.state}
            style={{ flex: part.gpus }}
            title={`${gpus(part.gpus)} ${words(part, idleSeconds)}`}
          />
        ))}
      </div>
      <ul className="key">
        {shown.map((part) => (
          <li key={part.state}>
            <i data-state={part.state} />
            <span>
              <b>
                <Mark value={gpus(part.gpus)} />
              </b>{' '}
              {words(part, idleSeconds)}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

function words(part: PartRow, idleSeconds: number): string {
  const named = stateWords(part.state, idleSeconds);
  if (!part.note) return named;
  return part.state === 'free-in-pieces' ? `${named} ${part.note}` : `${named}: ${part.note}`;
}
