import { GPUJob } from '../cluster/kinds.ts';
import { useChosenNamespaces } from '../cluster/useChosenNamespaces.ts';
import { useListing } from '../cluster/useListing.ts';
import { Jobs } from '../pages/Jobs.tsx';

export function JobsRoute() {
  return <Jobs jobs={useListing(GPUJob, useChosenNamespaces())} />;
}
