import { counted } from '../format/number.ts';
import { Card } from './Card.tsx';
import { State } from './State.tsx';

/** No node has a GPU, as far as the scheduler sees. */
export function NoGpus() {
  return (
    <Card title="No GPU node yet">
      <State
        words="No node has GPUs that the scheduler knows of."
        help="Nodes are taken by a label, which NVIDIA’s GPU feature discovery sets, or you; an agent then runs there. What is missing is said by the second line."
        command={'kubectl label node NODE nvidia.com/gpu.present=true\nkubectl gpu check'}
      />
    </Card>
  );
}

/** Nothing runs and nothing waits. */
export function NoJobs() {
  return (
    <Card title="No job yet">
      <State
        words="Nothing runs and nothing waits: all GPUs are free."
        help="This takes half a GPU for a program in an image of yours:"
        command="kubectl gpu submit train -i IMAGE -g 0.5"
      />
    </Card>
  );
}

/** Nobody is asked what GPUs do. */
export function NotFollowed() {
  return (
    <Card title="What GPUs do is not known" className="warn">
      <State
        words="Agents are not asked what GPUs do, so use is unknown everywhere: who holds a GPU is known, whether it works is not."
        help="This value of the chart has them keep it:"
        command="helm upgrade RELEASE CHART --reset-then-reuse-values --set agent.history.enabled=true"
      />
    </Card>
  );
}

/** Some agents say nothing any more. */
export function SilentAgents({ many }: { many: number }) {
  return (
    <Card title={`${counted(many, 'agent')} silent`} className="warn">
      <State
        words={`${counted(many, 'agent')} ${many === 1 ? 'says' : 'say'} nothing any more: what the GPUs of ${
          many === 1 ? 'its node' : 'their nodes'
        } do is not known.`}
        command="kubectl gpu check"
      />
    </Card>
  );
}
