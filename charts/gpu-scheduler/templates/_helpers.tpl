{{/* Name of the chart. */}}
{{- define "gpu-scheduler.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/*
Name of everything in the release; short enough for the suffixes below, and without the dots that
the name of a release may have and that of a Service may not.
*/}}
{{- define "gpu-scheduler.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := include "gpu-scheduler.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | replace "." "-" | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | replace "." "-" | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gpu-scheduler.selectorLabels" -}}
app.kubernetes.io/name: {{ include "gpu-scheduler.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gpu-scheduler.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "gpu-scheduler.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: gpu-scheduler
{{- end }}

{{- define "gpu-scheduler.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "gpu-scheduler.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is needed when serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The operator as the API server knows it. */}}
{{- define "gpu-scheduler.username" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "gpu-scheduler.serviceAccountName" . }}
{{- end }}

{{/*
Namespaces in which pods may pick GPUs by hand. An upgrade with --reuse-values from a version without this value finds
none, and gets the default of values.yaml.
*/}}
{{- define "gpu-scheduler.exemptNamespaces" -}}
{{- $names := .Values.admission.devices.exemptNamespaces }}
{{- if kindIs "invalid" $names }}
{{- $names = list "kube-system" "gpu-operator" "gpu-operator-resources" "nvidia-gpu-operator" "nvidia-device-plugin" "nvidia-dra-driver-gpu" "node-feature-discovery" }}
{{- end }}
{{- prepend $names .Release.Namespace | uniq | toJson }}
{{- end }}

{{- define "gpu-scheduler.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* What the operator itself runs: the image above, or one with Optuna, the front end of the dashboard, or both. */}}
{{- define "gpu-scheduler.operatorImage" -}}
{{- $more := printf "%s%s" (ternary "-tpe" "" .Values.sweeps.tpe) (ternary "-dashboard" "" .Values.dashboard.enabled) }}
{{- if and .Values.image.digest .Values.sweeps.tpe }}
{{- fail "sweeps.tpe adds -tpe to image.tag, but image.digest names one image: leave sweeps.tpe out and set the digest of the image with Optuna" }}
{{- end }}
{{- if .Values.image.digest }}
{{- include "gpu-scheduler.image" . }}
{{- else }}
{{- printf "%s%s" (include "gpu-scheduler.image" .) $more }}
{{- end }}
{{- end }}

{{/* Names of the pull secrets, with commas between. */}}
{{- define "gpu-scheduler.pullSecrets" -}}
{{- $names := list }}
{{- range .Values.imagePullSecrets }}
{{- $names = append $names .name }}
{{- end }}
{{- join "," $names }}
{{- end }}

{{/* Where pods report, unless the values say something else. */}}
{{- define "gpu-scheduler.reportUrl" -}}
{{- printf "http://%s-reports.%s.svc:%d/reports" (include "gpu-scheduler.fullname" .) .Release.Namespace (int .Values.sweeps.reports.port) }}
{{- end }}

{{/* The image that brings libgpucap. */}}
{{- define "gpu-scheduler.libraryImage" -}}
{{- default (include "gpu-scheduler.image" .) .Values.isolation.image }}
{{- end }}

{{/* The image of holders. */}}
{{- define "gpu-scheduler.holderImage" -}}
{{- default (include "gpu-scheduler.image" .) .Values.holders.image }}
{{- end }}

{{/* The Secret with the dashboard's certificate; empty where there is none, or no dashboard. */}}
{{- define "gpu-scheduler.dashboardTls" -}}
{{- if .Values.dashboard.enabled }}
{{- .Values.dashboard.tls.secret }}
{{- end }}
{{- end }}
