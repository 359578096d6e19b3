import { Loader, SectionBox } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import type { ReactNode } from 'react';
import type { Found } from '../read/listing.ts';
import { Frame } from './Frame.tsx';
import { Refused } from './Refused.tsx';

interface Props<T> {
  readonly title: string;
  readonly found: Found<T>;
  readonly children: (item: T) => ReactNode;
}

/** A page of one object, or why there is nothing to see. */
export function OnePage<T>({ title, found: { item, refusal }, children }: Props<T>) {
  return (
    <Frame>
      {!item && (
        <SectionBox title={title} backLink>
          {refusal ? <Refused refusal={refusal} /> : <Loader title={`${title} is asked for`} />}
        </SectionBox>
      )}
      {item && children(item)}
    </Frame>
  );
}
