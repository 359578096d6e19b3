{{/* Name of the agent's objects. */}}
{{- define "gpu-scheduler.agent.fullname" -}}
{{ include "gpu-scheduler.fullname" . }}-agent
{{- end }}

{{/* Other ones than the operator's, whose Service and budget must not see the agents. */}}
{{- define "gpu-scheduler.agent.selectorLabels" -}}
app.kubernetes.io/name: {{ include "gpu-scheduler.name" . | trunc 57 | trimSuffix "-" }}-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gpu-scheduler.agent.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "gpu-scheduler.agent.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: gpu-scheduler
{{- end }}

{{/* The agents as the API server knows them; they share one account. */}}
{{- define "gpu-scheduler.agent.username" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "gpu-scheduler.agent.fullname" . }}
{{- end }}

{{- define "gpu-scheduler.agent.image" -}}
{{- $repository := default (printf "%s-agent" .Values.image.repository) .Values.agent.image.repository }}
{{- if .Values.agent.image.digest }}
{{- printf "%s@%s" $repository .Values.agent.image.digest }}
{{- else }}
{{- printf "%s:%s" $repository (.Values.agent.image.tag | default .Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{/* Every GPU of the node, for what NVML and a test allocation need. */}}
{{- define "gpu-scheduler.agent.gpus" -}}
- name: NVIDIA_VISIBLE_DEVICES
  value: all
- name: NVIDIA_DRIVER_CAPABILITIES
  value: utility,compute
{{- end }}

{{/* Of containers that need no right at all. */}}
{{- define "gpu-scheduler.agent.restricted" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Numbers with commas between. Helm reads them as floats, and would write a million as 1e+06. */}}
{{- define "gpu-scheduler.wholeNumbers" -}}
{{- $numbers := list }}
{{- range . }}
{{- $numbers = append $numbers (int64 .) }}
{{- end }}
{{- join "," $numbers }}
{{- end }}
