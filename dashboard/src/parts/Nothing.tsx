import { go } from '../router/address.ts';
import { State } from './State.tsx';

function ShowAll() {
  return (
    <button type="button" onClick={() => go(location.pathname, { replace: true })}>
      Show all
    </button>
  );
}

/** No row: since nothing waits, or since nothing that waits is like that. */
export function NothingWaits({ filtered }: { filtered: boolean }) {
  if (filtered) return <State words="Nothing that waits is like that." help={<ShowAll />} />;
  return <State words="Nothing waits: whatever is submitted now is planned at once." />;
}

/** No row: since there is no work, or none like that. */
export function NoWork({ filtered }: { filtered: boolean }) {
  if (filtered) return <State words="No job is like that." help={<ShowAll />} />;
  return (
    <State
      words="No job yet."
      help="This takes half a GPU for a program in an image of yours:"
      command="kubectl gpu submit train -i IMAGE -g 0.5"
    />
  );
}

/** No search yet. */
export function NoSweeps({ filtered }: { filtered: boolean }) {
  if (filtered) return <State words="No sweep is like that." help={<ShowAll />} />;
  return (
    <State
      words="No sweep yet: a search of hyperparameters, whose trials share GPUs."
      command="kubectl explain gpujob.spec.sweep"
    />
  );
}
