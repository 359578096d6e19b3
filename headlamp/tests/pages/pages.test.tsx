// @vitest-environment jsdom
import '../../src/index.tsx';
import { cleanup, render, screen } from '@testing-library/react';
import type { ReactElement } from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { NOW } from '../../samples/build.ts';
import {
  ENDED,
  JOBS,
  NODES,
  PROJECTS,
  RUNNING,
  SEARCH,
  USAGES,
  WAITING,
} from '../../samples/cluster.ts';
import { EVIL, HOSTILE_JOB, HOSTILE_PROJECT, HOSTILE_USAGE } from '../../samples/hostile.ts';
import { InHeadlamp } from '../../samples/InHeadlamp.tsx';
import { ASKED, found, listed, refused } from '../../samples/listings.ts';
import { Job } from '../../src/pages/Job.tsx';
import { Jobs } from '../../src/pages/Jobs.tsx';
import { Projects } from '../../src/pages/Projects.tsx';
import { Sweep } from '../../src/pages/Sweep.tsx';
import { Sweeps } from '../../src/pages/Sweeps.tsx';
import { Use } from '../../src/pages/Use.tsx';

beforeEach(() => {
  history.pushState({}, '', '/c/main/gpu-scheduler/jobs');
  vi.spyOn(Date, 'now').mockReturnValue(NOW);
});
afterEach(cleanup);

function shown(page: ReactElement): string {
  const { container } = render(<InHeadlamp>{page}</InHeadlamp>);
  return (container.textContent ?? '').replaceAll('\u00a0', ' ');
}

const jobPage = (job: typeof RUNNING, usage = listed(USAGES)) => (
  <Job name={job.metadata.name} job={found(job)} usage={usage} nodes={listed(NODES)} />
);

describe('jobs', () => {
  it('are listed with the reason and the sentence', () => {
    const text = shown(<Jobs jobs={listed(JOBS)} />);
    expect(text).toContain('Pending · WaitingForQuota');
    expect(text).toContain(WAITING.status?.message);
    expect(text).toContain('0.3/0.3');
  });

  it('lead to their pages', () => {
    shown(<Jobs jobs={listed([RUNNING])} />);
    const link = screen.getByRole('link', { name: 'bert-finetune' });
    expect(link.getAttribute('href')).toBe('/c/main/gpu-scheduler/jobs/vision/bert-finetune');
  });

  it('that are none say how to make one', () => {
    const text = shown(<Jobs jobs={listed([])} />);
    expect(text).toContain('No GPU job yet.');
    expect(text).toContain('kubectl gpu submit');
  });

  it('are asked for, and said to be', () => {
    shown(<Jobs jobs={ASKED} />);
    expect(screen.getByRole('progressbar')).toBeTruthy();
  });
});

describe('a job', () => {
  it('that waits says why, and its place in the queue', () => {
    const text = shown(jobPage(WAITING));
    expect(text).toContain(WAITING.status?.message);
    expect(text).toContain('next of its project');
  });

  it('that runs says what it holds, what it does with it and what to change', () => {
    const text = shown(jobPage(RUNNING));
    expect(text).toContain('0 (NVIDIA A100-PCIE-40GB)');
    expect(text).toContain('9 GiB of 19.7 GiB');
    expect(text).toContain('ADD_WORKERS');
    expect(text).toContain('Memory caps are kept by libgpucap.');
  });

  it('says that its use is not known, and who refuses it', () => {
    expect(shown(jobPage(RUNNING, listed([])))).toContain('Not known: no agent has told');
    const refusal = refused(403, { plural: 'gpuusages', namespaces: ['vision'] });
    expect(shown(jobPage(RUNNING, refusal))).toContain('You may not list gpuusages in vision.');
  });

  it('that has ended says what it did', () => {
    expect(shown(jobPage(ENDED))).toContain('33.6 of 46.1');
  });

  it('that is gone is named', () => {
    const gone = refused(404, { name: 'gone', namespaces: ['lab'] });
    const text = shown(<Job name="gone" job={gone} usage={ASKED} nodes={ASKED} />);
    expect(text).toContain('There is no GPUJob gone in lab.');
  });
});

describe('projects', () => {
  it('are bars, in words too', () => {
    shown(<Projects projects={listed(PROJECTS)} />);
    expect(screen.getByRole('img', { name: '7.5 held, quota 6, limit 8' })).toBeTruthy();
    expect(screen.getByRole('img', { name: '4 held, quota 8, no limit' })).toBeTruthy();
  });

  it('have all the same scale', () => {
    shown(<Projects projects={listed(PROJECTS)} />);
    const bar = screen.getByRole('img', { name: '7.5 held, quota 6, limit 8' });
    const widths = [...bar.querySelectorAll('span')].map(part => part.style.width);
    expect(widths.slice(0, 3)).toEqual(['100%', '75%', '18.75%']);
  });

  it('say what is wrong with them', () => {
    expect(shown(<Projects projects={listed(PROJECTS)} />)).toContain('promise 16 GPUs');
  });

  it('that are none say how to make one', () => {
    expect(shown(<Projects projects={listed([])} />)).toContain('kubectl gpu project create');
  });
});

describe('use', () => {
  it('opens with what is held idle, and lists who', () => {
    const text = shown(<Use usage={listed(USAGES)} />);
    expect(text).toContain('5.8 GPUs are held, 0.3 GPU of that by 1 workload');
    expect(text).toContain('idle 5 h 40 min');
  });

  it('that nobody knows says what to set', () => {
    expect(shown(<Use usage={listed([])} />)).toContain('agent.history.enabled=true');
  });
});

describe('sweeps', () => {
  it('are listed with the best so far', () => {
    const text = shown(<Sweeps jobs={listed(JOBS)} />);
    expect(text).toContain('val_loss, least');
    expect(text).toContain('31 succeeded, 8 running, 14 waiting, 5 pruned, 2 failed');
    expect(text).not.toContain('bert-finetune');
  });

  it('that are none say what one is', () => {
    expect(shown(<Sweeps jobs={listed([RUNNING])} />)).toContain('No sweep yet');
  });

  it('have a page with the best trials and what failed', () => {
    const text = shown(<Sweep name="hpo-sweep" job={found(SEARCH)} />);
    expect(text).toContain('Best: trial 23 with val_loss 0.1834.');
    expect(text).toContain('adamw');
    expect(text).toContain('CUDA out of memory');
  });
});

describe.each([
  ['jobs', 'GPUJob', 'gpujobs', (of: ReturnType<typeof refused>) => <Jobs jobs={of} />],
  ['sweeps', 'GPUJob', 'gpujobs', (of: ReturnType<typeof refused>) => <Sweeps jobs={of} />],
  ['use', 'GPUUsage', 'gpuusages', (of: ReturnType<typeof refused>) => <Use usage={of} />],
  [
    'projects',
    'GPUProject',
    'gpuprojects',
    (of: ReturnType<typeof refused>) => <Projects projects={of} />,
  ],
])('%s', (_, kind, plural, page) => {
  it('of a kind that is not installed say so, and what to look for', () => {
    const text = shown(page(refused(404, { kind, plural })));
    expect(text).toContain(`This cluster has no kind ${kind}`);
    expect(text).toContain(`kubectl get crd ${plural}.gpu-scheduler.io`);
  });

  it('that may not be seen say so', () => {
    const text = shown(page(refused(403, { kind, plural })));
    expect(text).toContain(`You may not list ${plural}`);
    expect(text).toContain(`kubectl auth can-i list ${plural}.gpu-scheduler.io`);
  });
});

describe('others’ words', () => {
  it.each([
    ['jobs', <Jobs jobs={listed([HOSTILE_JOB])} />],
    [
      'a job',
      <Job
        name={HOSTILE_JOB.metadata.name}
        job={found(HOSTILE_JOB)}
        usage={listed([HOSTILE_USAGE])}
        nodes={listed([])}
      />,
    ],
    ['projects', <Projects projects={listed([HOSTILE_PROJECT])} />],
    ['use', <Use usage={listed([HOSTILE_USAGE])} />],
    ['sweeps', <Sweeps jobs={listed([HOSTILE_JOB])} />],
    ['a sweep', <Sweep name={HOSTILE_JOB.metadata.name} job={found(HOSTILE_JOB)} />],
  ])('are text: %s', (_, page) => {
    expect(shown(page)).toContain(EVIL);
    expect(document.querySelector('img')).toBeNull();
  });
});
