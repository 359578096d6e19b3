import type { Ref } from '../api/views.ts';
import { jobPath } from '../format/job.ts';
import { Link } from '../router/Link.tsx';

/** The name of a workload, which leads to its page. */
export function JobLink({ of }: { of: Ref }) {
  return (
    <Link to={jobPath(of)} className="q" title={`${of.kind} ${of.name} in ${of.namespace}`}>
      {of.name}
    </Link>
  );
}
