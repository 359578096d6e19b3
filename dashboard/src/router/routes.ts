/** The pages, by their address. */
export type Route =
  | { page: 'overview' }
  | { page: 'gpus' }
  | { page: 'device'; node: string; index: number }
  | { page: 'queue' }
  | { page: 'jobs' }
  | { page: 'compare' }
  | { page: 'job'; namespace: string; kind: string; name: string }
  | { page: 'projects' }
  | { page: 'project'; name: string }
  | { page: 'sweeps' }
  | { page: 'sweep'; namespace: string; name: string }
  | { page: 'nowhere' };

const NOWHERE: Route = { page: 'nowhere' };

/** Which page an address is of. */
export function route(path: string): Route {
  const parts = segments(path);
  if (!parts) return NOWHERE;
  const [first, a, b, c] = parts;
  switch (`${first ?? ''}/${parts.length}`) {
    case '/0':
    case 'overview/1':
      return { page: 'overview' };
    case 'gpus/1':
      return { page: 'gpus' };
    case 'gpus/3':
      if (a && b && /^\d{1,4}$/.test(b)) return { page: 'device', node: a, index: Number(b) };
      return NOWHERE;
    case 'queue/1':
      return { page: 'queue' };
    case 'jobs/1':
      return { page: 'jobs' };
    case 'jobs/2':
      return a === 'compare' ? { page: 'compare' } : NOWHERE;
    case 'jobs/4':
      return a && b && c ? { page: 'job', namespace: a, kind: b, name: c } : NOWHERE;
    case 'projects/1':
      return { page: 'projects' };
    case 'projects/2':
      return a ? { page: 'project', name: a } : NOWHERE;
    case 'sweeps/1':
      return { page: 'sweeps' };
    case 'sweeps/3':
      return a && b ? { page: 'sweep', namespace: a, name: b } : NOWHERE;
    default:
      return NOWHERE;
  }
}

/** The parts of an address; null: it is not well formed. */
function segments(path: string): string[] | null {
  try {
    return path.split('/').filter(Boolean).map(decodeURIComponent);
  } catch {
    return null;
  }
}
