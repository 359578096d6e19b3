import { describe, expect, it } from 'vitest';
import { job } from '../../samples/build.ts';
import { NODES, RUNNING } from '../../samples/cluster.ts';
import { heldLines } from '../../src/read/held.ts';

describe('what a job holds', () => {
  it('names GPUs by number and model', () => {
    expect(heldLines(RUNNING, NODES)).toEqual([
      {
        pod: 'bert-finetune-0-x7p2q',
        node: 'dell-1',
        devices: '0 (NVIDIA A100-PCIE-40GB)',
        cap: '19.7\u00a0GiB',
        isolation: 'interposer',
        busy: 0.3,
      },
    ]);
  });

  it('names them by their ids where nodes may not be read', () => {
    expect(heldLines(RUNNING, [])[0]?.devices).toBe('GPU-aaaa0000');
  });

  it('does not know use that no agent told', () => {
    const silent = { pod: 'a-0', node: 'n', devices: ['GPU-1', 'GPU-2'], memoryMiB: 1024 };
    const [line] = heldLines(job('a', { status: { placements: [silent] } }), NODES);
    expect(line).toMatchObject({ busy: null, isolation: '', devices: 'GPU-1, GPU-2' });
  });

  it('is nothing while it waits', () => {
    expect(heldLines(job('new'), NODES)).toEqual([]);
  });
});
