import { useView } from '../api/useView.ts';
import type { DeviceView } from '../api/views.ts';
import { devicePath } from '../format/job.ts';
import { memory } from '../format/number.ts';
import { Card } from '../parts/Card.tsx';
import { modelWords, ofCap } from '../parts/device.ts';
import { EarlierList } from '../parts/EarlierList.tsx';
import { GpuBox } from '../parts/GpuBox.tsx';
import { HealthCard } from '../parts/HealthCard.tsx';
import { Page } from '../parts/Page.tsx';
import { ProcessList } from '../parts/ProcessList.tsx';
import { ShareList } from '../parts/ShareList.tsx';
import { State } from '../parts/State.tsx';
import { Moment } from '../parts/Time.tsx';
import { NO_USE, Unknown } from '../parts/Unknown.tsx';
import { Link } from '../router/Link.tsx';

/** One GPU: who is on it, who was, and how it is. */
export function DevicePage({ node: name, index }: { node: string; index: number }) {
  const { view, refusal } = useView<DeviceView>(devicePath(name, index));
  return (
    <Page
      title={`GPU ${index} of ${name}`}
      crumb={
        <>
          <Link to="/gpus" className="q">
            GPUs
          </Link>
          {' / '}
          <Link to={`/gpus?q=${encodeURIComponent(name)}`} className="q">
            {name}
          </Link>
        </>
      }
      lead={view?.lead ?? null}
      refusal={refusal}
    >
      {view && <One of={view} />}
    </Page>
  );
}

function One({ of: view }: { of: DeviceView }) {
  const { node, device, health, processes, earlier, earlierFrom } = view;
  return (
    <>
      <Card title="Its shares" about="width is the share, height its use">
        <GpuBox
          device={device}
          by="use"
          height={72}
          shut={device.problem !== '' && device.shares.length === 0}
        />
        <div className="steps">
          <ShareList device={device} />
        </div>
      </Card>
      <div className="two">
        <Card title="The device">
          <dl className="pairs">
            <dt>model</dt>
            <dd>{modelWords(device)}</dd>
            <dt>UUID</dt>
            <dd>
              {device.uuid && device.uuid !== String(device.index) ? (
                device.uuid
              ) : (
                <Unknown why="no agent has told it" />
              )}
            </dd>
            <dt>memory in use</dt>
            <dd>
              {device.memoryUsedMib === null ? (
                <>
                  <Unknown why={NO_USE} /> of {memory(device.memoryMib)}
                </>
              ) : (
                ofCap(device.memoryUsedMib, device.memoryMib)
              )}
            </dd>
            <dt>takes new work</dt>
            <dd>
              {device.problem || node.closed ? `no: ${device.problem || node.closed}` : 'yes'}
            </dd>
            <dt>agent of its node</dt>
            <dd>{{ ok: 'well', silent: 'silent', none: 'none there' }[node.agent]}</dd>
            {Object.entries(node.labels).map(([label, value]) => (
              <Pair key={label} label={label} value={value} />
            ))}
          </dl>
        </Card>
        <HealthCard device={device} health={health} />
      </div>
      <Card title="Its processes" about="of work that you may see, with most memory first">
        {processes.length > 0 ? (
          <ProcessList processes={processes} />
        ) : (
          <State words="No process of such work is known on it." />
        )}
      </Card>
      <Card
        title="Who held it before"
        about={
          <>
            work that you may see, since this leader began at <Moment at={earlierFrom} />
          </>
        }
      >
        {earlier.length > 0 ? (
          <EarlierList rows={earlier} />
        ) : (
          <State words="None of it has given this GPU back." />
        )}
      </Card>
    </>
  );
}

function Pair({ label, value }: { label: string; value: string }) {
  return (
    <>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </>
  );
}
