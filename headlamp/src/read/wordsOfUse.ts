import { count, counted, gpuWords } from '../shared.ts';
import type { UseSum } from './use.ts';

/** The first sentence of the page: what is held, and what of it is held idle. */
export function wordsOfUse({ held, idle, idleWorkloads }: UseSum, omitted: number): string {
  const rest =
    omitted > 0 ? ` ${count(omitted)} more are left out, as their objects would be too large.` : '';
  if (held === 0) return `No GPU is held now.${rest}`;
  const all = `${gpuWords(held)} ${held > 1 ? 'are' : 'is'} held`;
  if (idle === 0) return `${all}, and none of it idle.${rest}`;
  const by = counted(idleWorkloads, 'workload');
  const verb = idleWorkloads === 1 ? 'runs' : 'run';
  return `${all}, ${gpuWords(idle)} of that by ${by} that ${verb} no kernel.${rest}`;
}
