{{/*
What values.schema.json cannot say in words a user could act on. Included once, by the Deployment; each refusal names the
value, what is wrong with it, and the way out.
*/}}
{{- define "gpu-scheduler.checked" -}}
{{- with .Values.leaderElection }}
{{- if or (ge (float64 .retrySeconds) (float64 .renewDeadlineSeconds)) (ge (float64 .renewDeadlineSeconds) (float64 .leaseSeconds)) }}
{{- fail "leaderElection: retrySeconds must be below renewDeadlineSeconds, and that below leaseSeconds" }}
{{- end }}
{{- end }}
{{- include "gpu-scheduler.checkedPorts" . }}
{{- include "gpu-scheduler.checkedImage" (dict "value" "image" "image" .Values.image) }}
{{- include "gpu-scheduler.checkedImage" (dict "value" "agent.image" "image" (default dict .Values.agent.image)) }}
{{- $known := .Files.Get "files/settings.yaml" | fromYaml }}
{{- include "gpu-scheduler.checkedEnv" (dict "value" "extraEnv" "env" .Values.extraEnv "known" $known.operator) }}
{{- include "gpu-scheduler.checkedEnv" (dict "value" "agent.extraEnv" "env" .Values.agent.extraEnv "known" $known.agent) }}
{{- include "gpu-scheduler.checkedLabels" (dict "value" "podLabels" "labels" .Values.podLabels) }}
{{- include "gpu-scheduler.checkedLabels" (dict "value" "agent.podLabels" "labels" .Values.agent.podLabels) }}
{{- include "gpu-scheduler.checkedBudget" . }}
{{- end }}

{{/* Ports that the operator listens on in one pod; 8080 is that of health and metrics. */}}
{{- define "gpu-scheduler.checkedPorts" -}}
{{- $ports := dict "sweeps.reports.port" .Values.sweeps.reports.port "dashboard.port" .Values.dashboard.port "dashboard.tls.port" .Values.dashboard.tls.port }}
{{- range $value, $port := $ports }}
{{- if eq (int $port) 8080 }}
{{- fail (printf "%s: 8080 is the port of the operator's health and metrics: take another one" $value) }}
{{- end }}
{{- end }}
{{- if and .Values.dashboard.enabled (ne (len (values $ports | toStrings | uniq)) 3) }}
{{- fail "dashboard.port, dashboard.tls.port and sweeps.reports.port must be three" }}
{{- end }}
{{- end }}

{{/* A repository is no whole reference: tag and digest have values of their own, and would be added to it. */}}
{{- define "gpu-scheduler.checkedImage" -}}
{{- with .image.repository }}
{{- if contains "@" . }}
{{- fail (printf "%s.repository: %s has a digest: write that to %s.digest, without the tag" $.value . $.value) }}
{{- end }}
{{- if contains ":" (base .) }}
{{- $tag := last (splitList ":" (base .)) }}
{{- fail (printf "%s.repository: %s has a tag: leave it out here, and set %s.tag=%s" $.value . $.value $tag) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Settings that a value of the chart sets would be there twice, and one that is none ends the start. */}}
{{- define "gpu-scheduler.checkedEnv" -}}
{{- range $number, $each := .env }}
{{- $name := default "" $each.name }}
{{- if hasPrefix "GPUSCHED_" $name }}
{{- $where := printf "%s[%d].name" $.value $number }}
{{- $known := get $.known $name }}
{{- if not $known }}
{{- fail (printf "%s: %s is set by a value of this chart, or is no setting (docs/reference/settings.md says by which); here may be: %s" $where $name (keys $.known | sortAlpha | join ", ")) }}
{{- end }}
{{- if and (hasKey $each "value") $known.pattern (not (regexMatch $known.pattern (lower (toString $each.value)))) }}
{{- fail (printf "%s[%d].value: %s must be %s, and is %q" $.value $number $name $known.words (toString $each.value)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Labels by which the chart finds its own pods. */}}
{{- define "gpu-scheduler.checkedLabels" -}}
{{- range $key, $_ := .labels }}
{{- if has $key (list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" "gpu-scheduler.io/component") }}
{{- fail (printf "%s: %s is set by the chart, which finds its pods by it: take another key" $.value $key) }}
{{- end }}
{{- end }}
{{- end }}

{{/* A budget that allows no pod to go lets no node be drained. */}}
{{- define "gpu-scheduler.checkedBudget" -}}
{{- with .Values.podDisruptionBudget }}
{{- $replicas := int $.Values.replicaCount }}
{{- if and .enabled (gt $replicas 1) }}
{{- $text := toString .minAvailable }}
{{- $least := int .minAvailable }}
{{- if hasSuffix "%" $text }}
{{- $least = div (add (mul (int (trimSuffix "%" $text)) $replicas) 99) 100 | int }}
{{- end }}
{{- if ge $least $replicas }}
{{- fail (printf "podDisruptionBudget.minAvailable: %s of %d replicas lets no node be drained: at most %d, or more replicas" $text $replicas (sub $replicas 1)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
