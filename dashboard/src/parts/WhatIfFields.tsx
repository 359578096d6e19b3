import type { NodeRow } from '../api/views.ts';
import { modelWords } from './device.ts';
import type { Draft } from './question.ts';

interface Props {
  draft: Draft;
  change: (part: Partial<Draft>) => void;
}

/** A manifest, as it would be applied. */
export function JobFields({ draft, change }: Props) {
  return (
    <label>
      its YAML, as for kubectl apply
      <textarea
        value={draft.manifest}
        spellCheck={false}
        onChange={(event) => change({ manifest: event.target.value })}
      />
    </label>
  );
}

/** So many nodes like one that is there. */
export function NodeFields({ draft, change, nodes }: Props & { nodes: readonly NodeRow[] }) {
  return (
    <>
      <label>
        more nodes
        <input
          type="number"
          min={1}
          max={1000}
          value={draft.nodes}
          onChange={(event) => change({ nodes: event.target.value })}
        />
      </label>
      <label>
        each like
        <select
          value={draft.likeNode || (nodes[0]?.name ?? '')}
          onChange={(event) => change({ likeNode: event.target.value })}
        >
          {nodes.map((node) => (
            <option key={node.name} value={node.name}>
              {node.name}: {node.devices.length} × {modelWords(node)}
            </option>
          ))}
        </select>
      </label>
    </>
  );
}

/** Another quota of a project. */
export function QuotaFields({ draft, change, projects }: Props & { projects: readonly string[] }) {
  return (
    <>
      <label>
        of the project
        <select
          value={draft.project || (projects[0] ?? '')}
          onChange={(event) => change({ project: event.target.value })}
        >
          {projects.map((project) => (
            <option key={project}>{project}</option>
          ))}
        </select>
      </label>
      <label>
        of so many GPUs
        <input
          type="number"
          min={0}
          step="any"
          value={draft.quota}
          onChange={(event) => change({ quota: event.target.value })}
        />
      </label>
    </>
  );
}
