import { Link } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { ROUTES } from '../names.ts';

interface Props {
  readonly of: { readonly namespace: string; readonly name: string };
  /** To its page as a search. */
  readonly sweep?: boolean;
}

/** The name of a GPUJob, that leads to its page. */
export function JobLink({ of: { namespace, name }, sweep = false }: Props) {
  return (
    <Link routeName={sweep ? ROUTES.sweep : ROUTES.job} params={{ namespace, name }}>
      {name}
    </Link>
  );
}
