import { useMemo } from 'react';
import { useParams } from 'react-router-dom';
import { GPUJob, GPUNode, GPUUsage } from '../cluster/kinds.ts';
import { useListing } from '../cluster/useListing.ts';
import { useOne } from '../cluster/useOne.ts';
import { Job } from '../pages/Job.tsx';

export function JobRoute() {
  const { namespace, name } = useParams<{ namespace: string; name: string }>();
  const namespaces = useMemo(() => [namespace], [namespace]);
  return (
    <Job
      name={name}
      job={useOne(GPUJob, namespace, name)}
      usage={useListing(GPUUsage, namespaces)}
      nodes={useListing(GPUNode)}
    />
  );
}
