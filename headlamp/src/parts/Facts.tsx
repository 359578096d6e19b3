import { NameValueTable } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import type { Fact } from '../read/why.ts';

/** Words and what they are, one below the other. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  return <NameValueTable rows={facts.map(([name, value]) => ({ name, value }))} />;
}
