import '../src/index.tsx';
import CssBaseline from '@mui/material/CssBaseline';
import { InHeadlamp } from '../samples/InHeadlamp.tsx';

export const globalTypes = {
  scheme: { toolbar: { title: 'Scheme', items: ['light', 'dark'] } },
};

export const initialGlobals = { scheme: 'light' };

export const decorators = [
  (Story: () => JSX.Element, { globals }: { globals: { scheme?: string } }) => (
    <InHeadlamp dark={globals.scheme === 'dark'}>
      <CssBaseline />
      <Story />
    </InHeadlamp>
  ),
];
