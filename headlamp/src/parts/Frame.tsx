import '../style/bars.css';
import { useTheme } from '@mui/material/styles';
import type { ReactNode } from 'react';
import { COLOURS } from '../style/colours.ts';

/** Around each page: the dashboard's colours, in the scheme that Headlamp shows. */
export function Frame({ children }: { children: ReactNode }) {
  const { mode } = useTheme().palette;
  return (
    <div className="gpu-scheduler" style={{ colorScheme: mode }}>
      <style>{COLOURS}</style>
      {children}
    </div>
  );
}
