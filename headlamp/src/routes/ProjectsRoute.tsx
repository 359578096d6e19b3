import { GPUProject } from '../cluster/kinds.ts';
import { useListing } from '../cluster/useListing.ts';
import { Projects } from '../pages/Projects.tsx';

export function ProjectsRoute() {
  return <Projects projects={useListing(GPUProject)} />;
}
