import { AT, device, HOUR, job, lead, node, project, queued, ref, share, sweep } from '../build.ts';
import { world, type World } from '../world.ts';
import { cluster } from './cluster.ts';

const nothing = lead('Nothing runs and nothing waits.');

/** No node has a GPU. */
export function empty(): World {
  const none = lead('There is no GPU yet.', 'The first node with one shows up here by itself.');
  return world({
    leads: {
      overview: none,
      gpus: none,
      queue: lead('Nothing waits.'),
      jobs: nothing,
      projects: lead('There is no project yet.'),
      sweeps: lead('There is no sweep yet.'),
    },
  });
}

/** GPUs, and nobody who wants them. */
export function unused(): World {
  const nodes = ['dell-1', 'dell-2'].map((name) =>
    node(
      name,
      Array.from({ length: 4 }, (_, index) => device(index, [])),
    ),
  );
  return world({
    nodes,
    leads: {
      overview: lead('All [8 GPUs](/gpus) are free.', 'Nothing waits.'),
      gpus: lead(
        'None of 8 GPUs is held.',
        'Most room in one piece: a whole node, [dell-1](/gpus?q=dell-1).',
      ),
      queue: lead('Nothing waits.'),
      jobs: nothing,
      projects: lead('There is no project yet.'),
      sweeps: lead('There is no sweep yet.'),
    },
  });
}

/** Nobody asks agents what GPUs do. */
export function unfollowed(): World {
  const made = cluster();
  made.followed = false;
  made.nodes = made.nodes.map((each) => ({
    ...each,
    devices: each.devices.map((gpu) =>
      device(
        gpu.index,
        gpu.shares.map((held) => ({ ...held, busy: null, memoryMib: null, idleSince: null })),
        { model: gpu.model, memoryMib: gpu.memoryMib },
      ),
    ),
  }));
  made.jobs = made.jobs.map((row) => ({
    ...row,
    busy: null,
    memoryMib: null,
    idleSince: null,
    advice: '',
  }));
  made.projects = made.projects.map((row) => ({ ...row, busy: null, idle: 0 }));
  made.idle = [];
  made.advice = [];
  made.leads.overview = lead(
    '[27.3 of 40 GPUs](/gpus) are allocated; what they do is not known.',
    '[12 jobs](/queue) wait.',
  );
  made.leads.gpus = lead('27.3 of 40 GPUs are allocated on five nodes; what they do is not known.');
  return made;
}

/** Two agents say nothing any more, and a GPU is broken. */
export function silent(): World {
  const made = cluster();
  made.silentAgents = 2;
  made.nodes = made.nodes.map((each, index) => {
    if (index === 3) {
      const devices = each.devices.map((gpu) =>
        gpu.index === 2 ? { ...gpu, problem: 'XID 79: it has fallen off the bus' } : gpu,
      );
      return { ...each, devices };
    }
    if (index > 1) return each;
    const devices = each.devices.map((gpu) => ({
      ...gpu,
      busy: null,
      memoryUsedMib: null,
      celsius: null,
      shares: gpu.shares.map((held) => ({ ...held, busy: null, memoryMib: null, idleSince: null })),
    }));
    return { ...each, agent: 'silent' as const, devices };
  });
  return made;
}

/** Who may see one namespace. */
export function tenant(): World {
  const made = cluster();
  const sees = 'speech';
  made.me = {
    user: 'tom@example.com',
    all: false,
    namespaces: [sees],
    actions: true,
    version: '9.9.9',
  };
  made.nodes = made.nodes.map((each) => ({
    ...each,
    devices: each.devices.map((gpu) => {
      const own = gpu.shares.filter((held) => held.ref?.namespace === sees);
      const rest = gpu.shares.filter((held) => held.ref?.namespace !== sees);
      if (rest.length === 0) return gpu;
      const sum = (of: (held: (typeof rest)[number]) => number | null) =>
        rest.reduce((all, held) => all + (of(held) ?? 0), 0);
      const others = share({
        ref: null,
        project: '',
        gpus: sum((held) => held.gpus),
        busy: sum((held) => held.busy),
        memoryMib: sum((held) => held.memoryMib),
        capMib: null,
      });
      return { ...gpu, shares: [...own, others] };
    }),
  }));
  made.jobs = made.jobs.filter((row) => row.ref.namespace === sees);
  made.queue = made.queue.filter((row) => row.ref.namespace === sees);
  made.sweeps = made.sweeps.filter((row) => row.ref.namespace === sees);
  made.idle = made.idle.filter((row) => row.ref.namespace === sees);
  made.advice = made.advice.filter((row) => row.ref.namespace === sees);
  made.leads.overview = lead(
    '[27.3 of 40 GPUs](/gpus) are allocated, 16.5 are busy.',
    '[One job](/queue) of yours waits.',
  );
  made.leads.queue = lead('One job of yours waits, for 4 min.');
  made.leads.jobs = lead('[Five jobs](/jobs?phase=Running) of yours run, [one](/queue) waits.');
  return made;
}

export const EVIL = '<img src=x onerror="window.hit=1">';

/** Names, messages and labels by somebody who means harm. */
export function hostile(): World {
  const script = '"><script>window.hit=1</script>';
  const long = 'w'.repeat(253);
  const bad = ref(EVIL, script);
  const row = job({
    ref: bad,
    project: `javascript:window.hit=1`,
    held: 0.5,
    node: EVIL,
    type: script,
    reason: EVIL,
    message: `${EVIL}\u202eevil\u202c =1+1`,
    advice: script,
  });
  const waits = queued({
    ref: ref(long, `=HYPERLINK("http://x")${EVIL}`),
    reason: EVIL,
    message: script,
    project: long,
    each: EVIL,
  });
  return world({
    me: { user: EVIL, all: true, namespaces: [], actions: true, version: script },
    nodes: [
      node(
        script,
        [
          device(0, [share({ ref: bad, gpus: 0.5, project: EVIL, pod: script })], {
            problem: EVIL,
          }),
        ],
        {
          closed: EVIL,
          labels: { zone: script, __proto__: EVIL, constructor: EVIL },
          model: EVIL,
        },
      ),
      node(long, [device(0, [])], { labels: { zone: EVIL } }),
    ],
    jobs: [row, job({ ref: ref(long, long), project: long, message: long })],
    queue: [waits],
    projects: [
      project({ name: EVIL, namespaces: [script, long], problem: script }),
      project({ name: long }),
    ],
    sweeps: [
      sweep({
        ref: ref(EVIL, script),
        objective: EVIL,
        best: { trial: 1, value: 1, parameters: { [EVIL]: script } },
        message: script,
      }),
    ],
    top: [
      { trial: 1, value: 1, parameters: { [EVIL]: script, constructor: '1' } },
      { trial: 2, value: 2, parameters: { [EVIL]: EVIL, constructor: '2' } },
    ],
    idle: [
      {
        ref: bad,
        project: EVIL,
        type: '',
        gpus: 1,
        idleSince: AT - 2 * HOUR,
        gpuHours: 2,
        command: `kubectl gpu suspend '${EVIL}'`,
      },
    ],
    advice: [
      { ref: bad, project: EVIL, rule: script, since: AT - HOUR, message: EVIL, command: script },
    ],
    log: `${EVIL}\n\u001b[31mred\u001b[0m\n${script}`,
    leads: {
      overview: {
        first: [
          { text: EVIL, to: 'javascript:window.hit=1' },
          { text: script, to: '//evil.example' },
        ],
        then: [],
      },
      gpus: lead('Hostile.'),
      queue: lead('Hostile.'),
      jobs: lead('Hostile.'),
      projects: lead('Hostile.'),
      sweeps: lead('Hostile.'),
    },
  });
}
