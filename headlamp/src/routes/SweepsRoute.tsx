import { GPUJob } from '../cluster/kinds.ts';
import { useChosenNamespaces } from '../cluster/useChosenNamespaces.ts';
import { useListing } from '../cluster/useListing.ts';
import { Sweeps } from '../pages/Sweeps.tsx';

export function SweepsRoute() {
  return <Sweeps jobs={useListing(GPUJob, useChosenNamespaces())} />;
}
