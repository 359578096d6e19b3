import { useView } from '../api/useView.ts';
import type { DeviceRow, GpusView, Lead, NodeRow } from '../api/views.ts';
import { gpus, memory, percent } from '../format/number.ts';
import { heldOf } from '../parts/box.ts';
import { Card } from '../parts/Card.tsx';
import { modelWords, ofCap } from '../parts/device.ts';
import { GpuBox } from '../parts/GpuBox.tsx';
import { Page } from '../parts/Page.tsx';
import { ShareList } from '../parts/ShareList.tsx';
import { State } from '../parts/State.tsx';
import { NO_USE, Unknown } from '../parts/Unknown.tsx';
import { Link } from '../router/Link.tsx';

const NONE: Lead = { first: [{ text: 'There is no such GPU.', to: '' }], then: [] };

/** One GPU: who is on it, and how it is. */
export function DevicePage({ node: name, index }: { node: string; index: number }) {
  const { view, refusal } = useView<GpusView>('/gpus');
  const node = view?.nodes.find((each) => each.name === name);
  const device = node?.devices.find((each) => each.index === index);
  const lead = view && (node && device ? sentence(node, device) : NONE);
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
      lead={lead}
      refusal={refusal}
    >
      {view && !(node && device) && (
        <Card title="Not there">
          <State
            words="Its node is gone, or has fewer GPUs than that."
            help={
              <Link to="/gpus" className="q">
                All GPUs
              </Link>
            }
          />
        </Card>
      )}
      {node && device && <One node={node} device={device} />}
    </Page>
  );
}

/** The view of all GPUs has no sentence for each: this one is made of the device alone. */
function sentence(node: NodeRow, device: DeviceRow): Lead {
  const held = heldOf(device);
  const use =
    device.busy === null
      ? 'what it does is not known'
      : `it is used ${percent(device.busy)} of the time`;
  const first =
    held === 0
      ? `GPU ${device.index} of ${node.name} is held by nobody.`
      : `${held < 1 ? gpus(held) : 'All'} of GPU ${device.index} of ${node.name} is held; ${use}.`;
  const then = device.problem || node.closed;
  return {
    first: [{ text: first, to: '' }],
    then: then ? [{ text: `It takes nobody: ${then}.`, to: '' }] : [],
  };
}

function One({ node, device }: { node: NodeRow; device: DeviceRow }) {
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
          <dd>{device.problem || node.closed ? `no: ${device.problem || node.closed}` : 'yes'}</dd>
          <dt>agent of its node</dt>
          <dd>{{ ok: 'well', silent: 'silent', none: 'none there' }[node.agent]}</dd>
          {Object.entries(node.labels).map(([label, value]) => (
            <Pair key={label} label={label} value={value} />
          ))}
        </dl>
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
