// What this plugin has in common with the dashboard's front end. Functions and colours alone: its
// components are made for another major version of React, and for another page around them.
export { duration } from '../../dashboard/src/format/duration.ts';
export { clock, exact, iso } from '../../dashboard/src/format/moment.ts';
export {
  count,
  counted,
  gpus,
  gpuWords,
  hours,
  measured,
  memory,
  percent,
} from '../../dashboard/src/format/number.ts';
export { own } from '../../dashboard/src/format/own.ts';
export type { Bounds } from '../../dashboard/src/format/quota.ts';
export { mostOf, quotaParts, quotaWords } from '../../dashboard/src/format/quota.ts';
export { TRIALS, trialWords } from '../../dashboard/src/parts/trials.ts';
