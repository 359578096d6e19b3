import tokens from '../../../dashboard/src/style/tokens.css?raw';

/** The dashboard's colours and sizes, for what is ours alone: Headlamp's own page keeps its own. */
export const COLOURS = tokens.replaceAll(':root', '.gpu-scheduler');
