/** What was asked of the API server. */
export interface Asked {
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Those that were asked for; empty: all. */
  readonly namespaces: readonly string[];
  /** Of one object; empty: a list. */
  readonly name: string;
}

/** Why there is nothing to see, and the way out; empty words are not said. */
export interface Refusal {
  readonly words: string;
  readonly help: string;
  readonly command: string;
}

const GROUP = 'gpu-scheduler.io';

/** What an answer of the API server that is none means; `error` as Headlamp has it. */
export function refusalOf(
  error: { readonly status?: number | undefined; readonly message: string },
  asked: Asked
): Refusal {
  switch (error.status) {
    case 401:
      return {
        words: 'The API server does not know you any more: your login has expired.',
        help: 'Log in to this cluster again.',
        command: '',
      };
    case 403:
      return forbidden(asked);
    case 404:
      return asked.name ? missing(asked) : notInstalled(asked);
    default:
      return {
        words: `The API server gave no ${asked.plural}: ${error.message || 'it did not say why'}`,
        help: '',
        command: '',
      };
  }
}

function forbidden({ plural, namespaced, namespaces, name }: Asked): Refusal {
  const verb = name ? 'get' : 'list';
  const [first] = namespaces;
  const where = !namespaced
    ? ''
    : first === undefined
    ? ' in all namespaces'
    : ` in ${namespaces.join(', ')}`;
  const option = !namespaced ? '' : first === undefined ? ' -A' : ` -n ${first}`;
  return {
    words: `You may not ${verb} ${plural}${where}.`,
    help: namespaced
      ? 'Choose namespaces in which you may: by the filter above, or for good as allowed namespaces in this cluster’s settings. The role view of a namespace is enough.'
      : 'They are of the whole cluster: an administrator lets groups read them by the value rbac.inventoryReaders of the chart.',
    command: `kubectl auth can-i ${verb} ${plural}.${GROUP}${option}`,
  };
}

function missing({ kind, namespaces, name }: Asked): Refusal {
  const where = namespaces.length > 0 ? ` in ${namespaces.join(', ')}` : '';
  return {
    words: `There is no ${kind} ${name}${where}.`,
    help: 'It may have been deleted, or never made; or the GPU scheduler is not installed in this cluster.',
    command: '',
  };
}

function notInstalled({ kind, plural }: Asked): Refusal {
  return {
    words: `This cluster has no kind ${kind}: the GPU scheduler is not installed here, or is too old for this page.`,
    help: 'An administrator installs its chart, which brings the kinds too. This says whether they are there:',
    command: `kubectl get crd ${plural}.${GROUP}`,
  };
}
