const compared = new URLSearchParams({
  a: 'vision/GPUJob/bert-finetune',
  b: 'speech/GPUJob/tts-train',
});

/** Every page, and something that only it says. */
export const PATHS: readonly (readonly [path: string, says: string])[] = [
  ['/', 'Where the GPUs are'],
  ['/gpus', 'dell-4'],
  ['/gpus?group=rack&colour=memory', 'rack 1'],
  ['/gpus?group=project&colour=heat', 'held by nobody'],
  ['/gpus/dell-1/1', 'Its processes'],
  ['/queue', 'In the order in which they are served'],
  ['/jobs', 'asr-base'],
  ['/jobs/vision/GPUJob/bert-finetune', 'DATA_BOUND'],
  ['/jobs/vision/GPUJob/resnet-ddp', 'GPU use of each pod'],
  ['/jobs/genomics/GPUJob/fold-10', 'From submission to its end'],
  [`/jobs/compare?${compared.toString()}`, 'What tells them apart'],
  ['/projects', 'robotics'],
  ['/projects/vision', 'Who holds its GPUs'],
  ['/sweeps', 'hpo-yesterday'],
  ['/sweeps/vision/hpo-sweep', 'What they have in common'],
  ['/nothing/here', 'There is no such page'],
];
