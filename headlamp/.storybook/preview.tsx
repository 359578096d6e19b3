import '../src/index.tsx';
import { InHeadlamp } from '../samples/InHeadlamp.tsx';

// Links lead to pages of a cluster, which Headlamp reads off the address.
history.replaceState({}, '', `/c/main/${location.search}`);

export const globalTypes = {
  scheme: { toolbar: { title: 'Scheme', items: ['light', 'dark'] } },
};

export const initialGlobals = { scheme: 'light' };

export const decorators = [
  (Story: () => JSX.Element, { globals }: { globals: { scheme?: string } }) => (
    <InHeadlamp dark={globals.scheme === 'dark'}>
      <Story />
    </InHeadlamp>
  ),
];
