import { type ReactNode, useState } from 'react';

/** Marks its content for two seconds when `value` changes; not when it is first shown. */
export function Mark({ value, children }: { value: string | number; children?: ReactNode }) {
  const [seen, setSeen] = useState({ value, times: 0 });
  if (seen.value !== value) setSeen({ value, times: seen.times + 1 });
  return (
    <span key={seen.times} className={seen.times > 0 ? 'mark' : undefined}>
      {children ?? value}
    </span>
  );
}
