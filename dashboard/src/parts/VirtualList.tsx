import { type CSSProperties, useEffect, useRef } from 'react';

import { count } from '../format/number.ts';
import type { Column } from './column.ts';
import { Head } from './Head.tsx';
import { Row } from './Row.tsx';
import { useInSight } from './useInSight.ts';
import { useSteady } from './useSteady.ts';
import { offsetFor } from './window.ts';

const ROW = 56;
/** Where a sentence has two lines. */
export const TALL_ROW = 74;

interface Props<T> {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  /** How many there are in all, and which of them `rows` begins with. */
  total: number;
  offset: number;
  /** What the rows answer: they keep their place while it stays. */
  question: string;
  onOffset: (offset: number) => void;
  sort: string;
  /** Of each row, in pixels. */
  height?: number;
  /** Absent: it cannot be sorted. */
  onSort: ((sort: string) => void) | undefined;
}

/** A long list, of which only what is in sight is drawn, and only what is near it is asked for. */
export function VirtualList<T>(props: Props<T>) {
  const { columns, rows, keyOf, total, offset, onOffset, sort, onSort, height = ROW } = props;
  const body = useRef<HTMLDivElement>(null);
  const { first, last } = useInSight(body, height, total);
  const kept = useSteady(rows, keyOf, props.question);

  useEffect(() => {
    const wanted = offsetFor({ first, last }, offset);
    if (wanted !== offset) onOffset(wanted);
  }, [first, last, offset, onOffset]);

  const style = {
    '--columns': columns.map((column) => column.width).join(' '),
    '--row': `${height}px`,
  } as CSSProperties;
  const shown = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index);
  return (
    <>
      {kept.moved && (
        <p className="sub" role="status">
          The order has changed since.{' '}
          <button type="button" className="bare" onClick={kept.settle}>
            Sort anew
          </button>
        </p>
      )}
      <div
        className="list virtual"
        role="table"
        aria-label={props.label}
        aria-rowcount={total + 1}
        style={style}
      >
        <Head columns={columns} sort={sort} onSort={onSort} />
        <div className="body" role="rowgroup" ref={body} style={{ height: total * height }}>
          {shown.map((index) => {
            const row = kept.rows[index - offset];
            const at = { transform: `translateY(${index * height}px)` };
            if (row === undefined) return <Waiting key={`row ${index}`} index={index} style={at} />;
            const key = keyOf(row);
            return (
              <Row
                key={key}
                row={row}
                columns={columns}
                index={index}
                fresh={kept.fresh.has(key)}
                style={at}
              />
            );
          })}
        </div>
      </div>
    </>
  );
}

function Waiting({ index, style }: { index: number; style: CSSProperties }) {
  return (
    <div role="row" className="row waiting-row" aria-rowindex={index + 2} style={style}>
      <div role="cell" className="cell" data-narrow="name">
        {count(index + 1)} …
      </div>
    </div>
  );
}
