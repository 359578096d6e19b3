import { GPUUsage } from '../cluster/kinds.ts';
import { useChosenNamespaces } from '../cluster/useChosenNamespaces.ts';
import { useListing } from '../cluster/useListing.ts';
import { Use } from '../pages/Use.tsx';

export function UseRoute() {
  return <Use usage={useListing(GPUUsage, useChosenNamespaces())} />;
}
