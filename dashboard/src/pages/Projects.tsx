import { useView } from '../api/useView.ts';
import type { ProjectRow, ProjectsView } from '../api/views.ts';
import { mostOf } from '../format/quota.ts';
import { Card } from '../parts/Card.tsx';
import { Csv } from '../parts/Csv.tsx';
import { List } from '../parts/List.tsx';
import { sorted } from '../parts/order.ts';
import { Page } from '../parts/Page.tsx';
import { projectColumns } from '../parts/projectColumns.tsx';
import { Search } from '../parts/Search.tsx';
import { State } from '../parts/State.tsx';
import { useQuery } from '../router/query.ts';

const keyOf = (row: ProjectRow) => row.name;

/** All projects: what they are due, what they hold, and since when they borrow. */
export function ProjectsPage() {
  const { view, refusal } = useView<ProjectsView>('/projects');
  const [query, set] = useQuery();
  const words = (query.get('q') ?? '').toLowerCase();
  const sort = query.get('sort') ?? '';
  const all = view?.rows ?? [];
  const columns = projectColumns(mostOf(all));
  const found = all.filter((row) =>
    [row.name, ...row.namespaces].some((each) => each.includes(words)),
  );
  const rows = sorted(found, columns, sort);
  return (
    <Page title="Projects" lead={view?.lead ?? null} refusal={refusal}>
      <Card
        title="Projects"
        about="mark: quota; pale green: borrowed; grey: up to the limit"
        more={<Csv name="projects" columns={columns} rows={() => rows} />}
      >
        {all.length === 0 ? (
          <State
            words="There is no project yet. A namespace gets GPUs through one: nothing starts before."
            help="A project guarantees GPUs to some namespaces, lets them borrow what others leave, and says up to where."
            command="kubectl explain gpuproject.spec"
          />
        ) : (
          <>
            <div className="filters" role="search">
              <Search
                label="project or namespace"
                value={query.get('q') ?? ''}
                onSearch={(q) => set({ q })}
              />
            </div>
            <List
              label="projects"
              columns={columns}
              rows={rows}
              keyOf={keyOf}
              sort={sort}
              onSort={(next) => set({ sort: next })}
            />
            {rows.length === 0 && <State words="No project is like that." />}
          </>
        )}
      </Card>
    </Page>
  );
}
