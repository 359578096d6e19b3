import { Page } from '../parts/Page.tsx';
import { State } from '../parts/State.tsx';
import { Link } from '../router/Link.tsx';

const LEAD = { first: [{ text: 'There is no such page.', to: '' }], then: [] };

/** An address that no page has. */
export function Nowhere() {
  return (
    <Page title="No such page" lead={LEAD} refusal={null} names={false}>
      <State
        words="Its address may have been cut off."
        help={
          <Link to="/" className="q">
            To the overview
          </Link>
        }
      />
    </Page>
  );
}
