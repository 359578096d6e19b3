import {
  Loader,
  SectionBox,
  SectionFilterHeader,
} from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import type { ReactNode } from 'react';
import type { Listing } from '../read/listing.ts';
import { Frame } from './Frame.tsx';
import { Refused } from './Refused.tsx';

interface Props<T> {
  readonly title: string;
  readonly listing: Listing<T>;
  /** Whether Headlamp's filter of namespaces says what is asked for. */
  readonly namespaced: boolean;
  readonly children: (items: readonly T[]) => ReactNode;
}

/** A page of a list: what there is, why there is nothing to see, or that it is asked for. */
export function ListPage<T>({ title, listing, namespaced, children }: Props<T>) {
  const { items, refusal } = listing;
  return (
    <Frame>
      <SectionBox title={<SectionFilterHeader title={title} noNamespaceFilter={!namespaced} />}>
        {refusal && <Refused refusal={refusal} />}
        {items && (items.length > 0 || !refusal) && children(items)}
        {!items && !refusal && <Loader title={`${title} are asked for`} />}
      </SectionBox>
    </Frame>
  );
}
