import type { WorkRef } from '../api/views.ts';
import { jobPath } from '../format/job.ts';
import { Link } from '../router/Link.tsx';

/** The name of a workload, which leads to its page. */
export function JobLink({ of }: { of: WorkRef }) {
  return (
    <Link to={jobPath(of)} className="q" title={`${of.kind} ${of.name} in ${of.namespace}`}>
      {of.name}
    </Link>
  );
}
