import { useParams } from 'react-router-dom';
import { GPUJob } from '../cluster/kinds.ts';
import { useOne } from '../cluster/useOne.ts';
import { Sweep } from '../pages/Sweep.tsx';

export function SweepRoute() {
  const { namespace, name } = useParams<{ namespace: string; name: string }>();
  return <Sweep name={name} job={useOne(GPUJob, namespace, name)} />;
}
