import {
  ENDED,
  JOBS,
  NODES,
  PROJECTS,
  RUNNING,
  SEARCH,
  USAGES,
  WAITING,
} from '../samples/cluster.ts';
import { HOSTILE_JOB } from '../samples/hostile.ts';
import { found, listed, refused } from '../samples/listings.ts';
import type { GPUJob } from '../src/kinds/types.ts';
import { Job } from '../src/pages/Job.tsx';
import { Jobs } from '../src/pages/Jobs.tsx';
import { Projects } from '../src/pages/Projects.tsx';
import { Sweep } from '../src/pages/Sweep.tsx';
import { Sweeps } from '../src/pages/Sweeps.tsx';
import { Use } from '../src/pages/Use.tsx';

export default { title: 'Pages' };

function OfJob({ job }: { job: GPUJob }) {
  return (
    <Job name={job.metadata.name} job={found(job)} usage={listed(USAGES)} nodes={listed(NODES)} />
  );
}

export const JobList = () => <Jobs jobs={listed(JOBS)} />;
export const JobThatRuns = () => <OfJob job={RUNNING} />;
export const JobThatWaits = () => <OfJob job={WAITING} />;
export const JobThatHasEnded = () => <OfJob job={ENDED} />;
export const ProjectList = () => <Projects projects={listed(PROJECTS)} />;
export const UseOfGpus = () => <Use usage={listed(USAGES)} />;
export const SweepList = () => <Sweeps jobs={listed(JOBS)} />;
export const SweepDetail = () => <Sweep name="hpo-sweep" job={found(SEARCH)} />;
export const NoJobs = () => <Jobs jobs={listed([])} />;
export const NotInstalled = () => (
  <Projects projects={refused(404, { kind: 'GPUProject', plural: 'gpuprojects' })} />
);
export const NoRight = () => <Jobs jobs={refused(403)} />;
export const OthersWords = () => <OfJob job={HOSTILE_JOB} />;
