import { type KeyboardEvent, type SyntheticEvent, useEffect, useState } from 'react';

import type { NodeRow } from '../api/views.ts';
import { counted, gpus, percent } from '../format/number.ts';
import type { ColourBy } from './box.ts';
import { Card } from './Card.tsx';
import { modelWords } from './device.ts';
import { busyOf, type Group } from './groups.ts';
import { nearest } from './nearest.ts';
import { NodeBoxes } from './NodeBoxes.tsx';
import { type At, Pointed } from './Pointed.tsx';

interface Props {
  groups: readonly Group[];
  by: ColourBy;
  small: boolean;
}

const SELECTOR = 'a[data-box]';

/** All GPUs as boxes. The Tab key comes to one of them, arrows lead on, pointing shows what it is. */
export function Boxes({ groups, by, small }: Props) {
  const nodes = groups.flatMap((group) => group.nodes);
  const first = nodes.find((node) => node.devices.length > 0);
  const [entry, setEntry] = useState('');
  const [at, setAt] = useState<{ key: string; box: DOMRect } | null>(null);
  const known = find(nodes, entry);
  const current = known ? entry : `${first?.name ?? ''} ${first?.devices[0]?.index ?? 0}`;

  useEffect(() => {
    const away = () => setAt(null);
    addEventListener('scroll', away, { passive: true });
    return () => removeEventListener('scroll', away);
  }, []);

  const point = (event: SyntheticEvent) => {
    const box = (event.target as Element).closest<HTMLElement>(SELECTOR);
    const key = box?.dataset['box'];
    setAt(box && key ? { key, box: box.getBoundingClientRect() } : null);
    if (event.type === 'focus' && key) setEntry(key);
  };
  const move = (event: KeyboardEvent<HTMLElement>) => {
    if (event.key === 'Escape') setAt(null);
    const from = (event.target as Element).closest<HTMLElement>(SELECTOR);
    if (!from || !event.key.startsWith('Arrow')) return;
    const boxes = [...event.currentTarget.querySelectorAll<HTMLElement>(SELECTOR)];
    const next = boxes[nearest(event.key, middle(from), boxes.map(middle))];
    if (!next) return;
    event.preventDefault();
    next.focus();
  };

  const pointed = at && find(nodes, at.key);
  return (
    <div
      onMouseOver={point}
      onMouseLeave={() => setAt(null)}
      onFocus={point}
      onBlur={() => setAt(null)}
      onKeyDown={move}
    >
      {groups.map((group) =>
        small ? (
          <SmallGroup key={group.name} group={group} by={by} current={current} />
        ) : (
          group.nodes.map((node) => (
            <NodeCard key={node.name} node={node} by={by} current={current} />
          ))
        ),
      )}
      {at && pointed && <Pointed at={{ ...pointed, box: at.box } satisfies At} />}
    </div>
  );
}

function entryOf(node: NodeRow, current: string): number {
  if (!current.startsWith(`${node.name} `)) return -1;
  const index = Number(current.slice(node.name.length + 1));
  return node.devices.findIndex((device) => device.index === index);
}

function find(nodes: readonly NodeRow[], key: string) {
  for (const node of nodes) {
    const device = node.devices[entryOf(node, key)];
    if (device) return { node, device };
  }
  return null;
}

function middle(element: HTMLElement) {
  const { left, top, width, height } = element.getBoundingClientRect();
  return { x: left + width / 2, y: top + height / 2 };
}

function NodeCard({ node, by, current }: { node: NodeRow; by: ColourBy; current: string }) {
  const cpu = `${gpus(node.cpuFree)} of ${gpus(node.cpuTotal)} CPUs free`;
  const ends = node.free > 0 && node.cpuFree < 1 ? `${cpu}: CPUs end first` : cpu;
  const agent = { ok: '', silent: 'agent silent', none: 'no agent' }[node.agent];
  return (
    <Card
      className={node.closed ? 'group dim' : 'group'}
      title={node.name}
      about={[modelWords(node), node.closed || ends, agent].filter(Boolean).join(' · ')}
      more={<span className="sub">{node.closed ? '–' : gpus(node.free)} free</span>}
    >
      <NodeBoxes node={node} by={by} small={false} entry={entryOf(node, current)} />
    </Card>
  );
}

function SmallGroup({ group, by, current }: { group: Group; by: ColourBy; current: string }) {
  const models = [...new Set(group.nodes.map((node) => modelWords(node)))].join(', ');
  const busy = busyOf(group.nodes);
  const devices = group.nodes.reduce((sum, node) => sum + node.devices.length, 0);
  const use =
    busy === null
      ? 'use not known'
      : `${counted(devices, 'GPU')}, used ${percent(busy)} of the time`;
  const free = group.nodes.reduce((sum, node) => sum + (node.closed ? 0 : node.free), 0);
  return (
    <Card
      className="group small"
      title={group.name}
      about={[counted(group.nodes.length, 'node'), models, use].join(' · ')}
      more={
        <span className="sub">
          {group.held === undefined ? `${gpus(free)} free` : `${gpus(group.held)} held`}
        </span>
      }
    >
      <div className="small-nodes">
        {group.nodes.map((node) => (
          <NodeBoxes key={node.name} node={node} by={by} small entry={entryOf(node, current)} />
        ))}
      </div>
    </Card>
  );
}
