import {
  darkTheme,
  lightTheme,
} from '@kinvolk/headlamp-plugin/lib/components/App/defaultAppThemes';
import { setStore } from '@kinvolk/headlamp-plugin/lib/lib/router/createRouteURL';
import { createMuiTheme } from '@kinvolk/headlamp-plugin/lib/lib/themes';
import store from '@kinvolk/headlamp-plugin/lib/redux/stores/store';
import { ThemeProvider } from '@mui/material/styles';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Provider } from 'react-redux';
import { MemoryRouter } from 'react-router-dom';

interface Props {
  readonly dark?: boolean;
  readonly children: ReactNode;
}

// As Headlamp does when it starts: links find pages by it.
setStore(store);

const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });

/** What Headlamp puts around a page: its store, its router, its theme. */
export function InHeadlamp({ dark = false, children }: Props) {
  return (
    <Provider store={store}>
      <QueryClientProvider client={client}>
        <ThemeProvider theme={createMuiTheme(dark ? darkTheme : lightTheme)}>
          <MemoryRouter>{children}</MemoryRouter>
        </ThemeProvider>
      </QueryClientProvider>
    </Provider>
  );
}
