import { useNow } from '../api/clock.ts';
import type { JobView } from '../api/views.ts';
import { type Compared, compared } from './compared.ts';
import { NO_USE, Unknown } from './Unknown.tsx';

/** Two jobs in two columns; what differs is set apart. */
export function ComparedList({ a, b }: { a: JobView; b: JobView }) {
  const now = useNow((at) => Math.floor(at));
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="two jobs in two columns">
      <table className="plain">
        <thead>
          <tr>
            <td />
            <th scope="col">{a.row.ref.name}</th>
            <th scope="col">{b.row.ref.name}</th>
          </tr>
        </thead>
        <tbody>
          {compared(a, b, now).map((row) => (
            <tr key={row.what}>
              <th scope="row">{row.what}</th>
              <Value row={row} of="a" />
              <Value row={row} of="b" />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Value({ row, of }: { row: Compared; of: 'a' | 'b' }) {
  const value = row[of];
  if (value === null) {
    return (
      <td>
        <Unknown why={NO_USE} />
      </td>
    );
  }
  return <td>{row.a === row.b ? value : <b>{value}</b>}</td>;
}
