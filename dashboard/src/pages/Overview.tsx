import { useView } from '../api/useView.ts';
import type { OverviewView } from '../api/views.ts';
import { duration } from '../format/duration.ts';
import { counted, gpus } from '../format/number.ts';
import { Card } from '../parts/Card.tsx';
import { ChartCard } from '../parts/ChartCard.tsx';
import { AdviceList } from '../parts/AdviceList.tsx';
import { IdleList } from '../parts/IdleList.tsx';
import { NoGpus, NoJobs, NotFollowed, SilentAgents } from '../parts/Missing.tsx';
import { Page } from '../parts/Page.tsx';
import { ProjectList } from '../parts/ProjectList.tsx';
import { ReasonList } from '../parts/ReasonList.tsx';
import { State } from '../parts/State.tsx';
import { Strip } from '../parts/Strip.tsx';
import { Link } from '../router/Link.tsx';

/** The cluster at a glance. */
export function OverviewPage() {
  const { view, refusal } = useView<OverviewView>('/overview');
  return (
    <Page title="Overview" lead={view?.lead ?? null} refusal={refusal}>
      {view && (view.nodes === 0 ? <NoGpus /> : <Cards view={view} />)}
    </Page>
  );
}

function Cards({ view }: { view: OverviewView }) {
  const runs = view.projects.some((row) => row.running > 0 || row.waiting > 0);
  const held = view.parts.some((part) => part.gpus > 0 && !['free', 'closed'].includes(part.state));
  return (
    <>
      {!view.followed && <NotFollowed />}
      {view.followed && view.silentAgents > 0 && <SilentAgents many={view.silentAgents} />}
      <Card
        title="Where the GPUs are"
        about={`${gpus(view.gpus)} ${view.gpus === 1 ? 'GPU' : 'GPUs'} on ${counted(view.nodes, 'node')}, this second`}
      >
        <Strip parts={view.parts} idleSeconds={view.idleSeconds} />
      </Card>
      {!runs && !held && <NoJobs />}
      <ChartCard />
      <div className="two">
        <Card
          title="Projects"
          about="mark: quota; pale green: borrowed; grey: up to the limit"
          more={<Link to="/projects">Projects</Link>}
        >
          {view.projects.length > 0 ? (
            <ProjectList rows={view.projects} />
          ) : (
            <State
              words="There is no project yet. A namespace gets GPUs through one: nothing starts before."
              command="kubectl explain gpuproject.spec"
            />
          )}
        </Card>
        <Card title="Why jobs wait" more={<Link to="/queue">Queue</Link>}>
          {view.reasons.length > 0 ? (
            <ReasonList rows={view.reasons} />
          ) : (
            <State words="Nothing waits." />
          )}
        </Card>
      </div>
      <div className="two">
        <Card
          title="Held and not used"
          about="most GPU-hours first"
          more={
            view.idleCount > view.idle.length && <Link to="/jobs?idle=1">all {view.idleCount}</Link>
          }
        >
          {view.idle.length > 0 ? (
            <IdleList rows={view.idle} />
          ) : (
            <State
              words={
                view.followed
                  ? `Nobody has held a GPU for ${duration(view.idleSeconds)} without using it.`
                  : 'Whether GPUs are held without use is not known.'
              }
            />
          )}
        </Card>
        <Card
          title="What to change"
          about={
            view.adviceCount > view.advice.length
              ? `the first ${view.advice.length} of ${view.adviceCount}`
              : 'advice that saves most'
          }
          more={<Link to="/jobs?phase=Running">Jobs</Link>}
        >
          {view.advice.length > 0 ? (
            <AdviceList rows={view.advice} />
          ) : (
            <State
              words={view.followed ? 'Nothing to advise.' : 'Without use there is no advice.'}
            />
          )}
        </Card>
      </div>
    </>
  );
}
