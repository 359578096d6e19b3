import type { DeviceView, EarlierRow, HealthRow, ProcessRow } from '../src/api/views.ts';
import { gpus, percent } from '../src/format/number.ts';
import { heldOf } from '../src/parts/box.ts';
import { DAY, HOUR, lead, MINUTE } from './build.ts';
import type { World } from './world.ts';

/** The page of one GPU; null: there is none. */
export function deviceView(world: World, name: string, index: number): DeviceView | null {
  const node = world.nodes.find((each) => each.name === name);
  const device = node?.devices.find((each) => each.index === index);
  if (!node || !device) return null;
  const { at, idleSeconds, followed } = world;
  const processes = device.shares.flatMap((share, place): ProcessRow[] =>
    share.ref && share.busy !== null
      ? [
          {
            pid: 24_000 + 131 * place,
            ref: share.ref,
            pod: share.pod,
            container: 'main',
            memoryMib: share.memoryMib,
            busy: share.busy,
          },
        ]
      : [],
  );
  const held = heldOf(device);
  const who = `GPU ${index} of ${name}`;
  return {
    at,
    lead: lead(
      held === 0
        ? `${who} is held by nobody.`
        : `${held < 1 ? gpus(held) : 'All'} of ${who} is held; ${device.busy === null ? 'what it does is not known' : `it is used ${percent(device.busy)} of the time`}.`,
      device.problem ? `It takes nobody: ${device.problem}.` : '',
    ),
    idleSeconds,
    followed,
    node: { ...node, devices: [] },
    device,
    health:
      device.celsius === null
        ? null
        : health(
            index,
            device.shares.some((one) => !one.ref),
          ),
    processes,
    earlier: index === 1 ? earlier(world) : [],
    earlierFrom: at - 3 * DAY,
  };
}

/** Searches that have ended there, the last first. */
function earlier({ at, sweeps }: World): EarlierRow[] {
  return sweeps.slice(0, 2).map(({ ref }, place) => ({
    ref,
    gpus: place === 0 ? 0.25 : 1,
    pods: place === 0 ? 3 : 1,
    since: at - (2 + 5 * place) * HOUR,
    until: at - place * HOUR - 20 * MINUTE,
  }));
}

function health(index: number, others: boolean): HealthRow {
  return {
    watts: others ? null : 180 + 31 * index,
    slowed: others ? null : index === 1 ? ['heat'] : [],
    nvlinkMibASecond: others ? null : 0,
    xids: others ? null : index === 1 ? [{ code: 31, times: 2 }] : [],
    uncorrectedEcc: 0,
    remappedAfterCorrected: index,
    remappedAfterUncorrected: 0,
    remapFailed: false,
  };
}
