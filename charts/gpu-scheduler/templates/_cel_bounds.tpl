{{/*
How long the lists may be that a policy walks. The API server pays for so much of an expression and no more (a million
units, about 0.1 s), and what exceeds that is let in by a policy that fails open, and refused in words about costs by one that
fails closed. So every policy counts first, which costs next to nothing, and names the list that is too long; what it walks
then fits, whatever stands in it. tests/chart/test_policy_bounds.py reads these rules out of the rendered policies, and finds
every walk that has none; docs/adr/0059.
*/}}

{{/* The bounds: of lists of the object, and of lists of its containers, those of all containers together. */}}
{{- define "gpu-scheduler.cel.bounds" -}}
metadata.annotations: 1000
metadata.labels: 1000
metadata.ownerReferences: 200
spec.containers: 200
spec.initContainers: 200
spec.ephemeralContainers: 100
spec.schedulingGates: 200
spec.template.spec.schedulingGates: 200
spec.volumes: 500
status.conditions: 500
env: 2000
envFrom: 2000
volumeMounts: 1000
ports: 1000
resources.limits: 500
{{- end }}

{{/* Texts about lists (.lists) of an object (.of) that are too long; [] = none. .most: other bounds than those above. */}}
{{- define "gpu-scheduler.cel.tooLong" -}}
{{- $bounds := mergeOverwrite (include "gpu-scheduler.cel.bounds" . | fromYaml) (.most | default dict) }}
{{- range $index, $list := .lists }}
{{- $most := get $bounds $list | int }}
{{- $field := printf "%s.%s" $.of $list }}
{{- if $index }}
+ {{ end -}}
(has({{ $field }}) && size({{ $field }}) > {{ $most }} ?
['{{ $list }}: ' + string(size({{ $field }})) + ' entries, at most {{ $most }} can be looked through'] : [])
{{- end }}
{{- end }}

{{/* How many entries the lists .list of the containers in object.spec.* (.within) have; those of too many count as none. */}}
{{- define "gpu-scheduler.cel.entriesWithin" -}}
{{- $bounds := include "gpu-scheduler.cel.bounds" . | fromYaml }}
{{- range $index, $containers := .within }}
{{- $field := printf "object.spec.%s" $containers }}
{{- if $index }}
+ {{ end -}}
(has({{ $field }}) && size({{ $field }}) <= {{ get $bounds (printf "spec.%s" $containers) | int }} ? {{ $field }}.map(c,
{{ if contains "." $.list }}has(c.{{ splitList "." $.list | first }}) && {{ end }}has(c.{{ $.list }}) ? size(c.{{ $.list }}) : 0).sum() : 0)
{{- end }}
{{- end }}

{{/* Texts about lists (.lists) of containers (.within) that are too long, all containers together; .most as above. */}}
{{- define "gpu-scheduler.cel.tooLongWithin" -}}
{{- $bounds := mergeOverwrite (include "gpu-scheduler.cel.bounds" . | fromYaml) (.most | default dict) }}
{{- range $index, $list := .lists }}
{{- $most := get $bounds $list | int }}
{{- if $index }}
+ {{ end -}}
[{{ include "gpu-scheduler.cel.entriesWithin" (dict "list" $list "within" $.within) }}].filter(n, n > {{ $most }}).map(n,
'{{ $list }}: ' + string(n) + ' entries in spec.{{ join " and " $.within }}, at most {{ $most }} can be looked through')
{{- end }}
{{- end }}

{{/* Of the containers that a request adds (gpu-scheduler.cel.allContainers). */}}
{{- define "gpu-scheduler.cel.addsTooMuch" -}}
{{- $lists := list "env" "envFrom" "resources.limits" }}
(request.operation == 'CREATE' ?
{{ include "gpu-scheduler.cel.tooLong" (dict "of" "object" "lists" (list "spec.containers" "spec.initContainers")) }}
+ {{ include "gpu-scheduler.cel.tooLongWithin" (dict "within" (list "containers" "initContainers") "lists" $lists) }} :
has(request.subResource) && request.subResource == 'ephemeralcontainers' ?
{{ include "gpu-scheduler.cel.tooLong" (dict "of" "object" "lists" (list "spec.ephemeralContainers")) }}
+ {{ include "gpu-scheduler.cel.tooLong" (dict "of" "oldObject" "lists" (list "spec.ephemeralContainers")) }}
+ {{ include "gpu-scheduler.cel.tooLongWithin" (dict "within" (list "ephemeralContainers") "lists" $lists) }} : [])
{{- end }}

{{/* Of what a request writes into a pod: what it leaves as it was is not walked, however long. */}}
{{- define "gpu-scheduler.cel.writesTooMuch" -}}
{{- $annotations := list "metadata.annotations" }}
{{- $gates := list "spec.schedulingGates" }}
{{- $inits := list "spec.initContainers" }}
({{ include "gpu-scheduler.cel.sameAnnotations" . }} ? [] :
{{ include "gpu-scheduler.cel.tooLong" (dict "of" "object" "lists" $annotations) }}
+ (request.operation == 'CREATE' ? [] : {{ include "gpu-scheduler.cel.tooLong" (dict "of" "oldObject" "lists" $annotations) }}))
+ ({{ include "gpu-scheduler.cel.changesGates" . }} ?
{{ include "gpu-scheduler.cel.tooLong" (dict "of" "object" "lists" $gates) }}
+ {{ include "gpu-scheduler.cel.tooLong" (dict "of" "oldObject" "lists" $gates) }} : [])
+ ({{ include "gpu-scheduler.cel.changesInits" . }} ?
{{ include "gpu-scheduler.cel.tooLong" (dict "of" "object" "lists" $inits) }}
+ {{ include "gpu-scheduler.cel.tooLong" (dict "of" "oldObject" "lists" $inits) }} : [])
{{- end }}

{{/* Of what the operator writes, and of what was there: objects of users, which it compares field by field. */}}
{{- define "gpu-scheduler.cel.operatorTooMuch" -}}
{{- $meta := list "metadata.annotations" "metadata.labels" "metadata.ownerReferences" }}
((request.operation == 'DELETE' ? [] : {{ include "gpu-scheduler.cel.tooLong" (dict "of" "object" "lists" $meta) }})
+ (request.operation == 'CREATE' ? [] : {{ include "gpu-scheduler.cel.tooLong" (dict "of" "oldObject" "lists" $meta) }})
+ (request.resource.resource == 'pods' && request.operation != 'CREATE' ?
{{- range $index, $of := list "oldObject" "object" }}
{{- if $index }}
+ (request.operation == 'DELETE' ? [] : {{ end }}
{{ include "gpu-scheduler.cel.tooLong" (dict "of" $of "lists" (list "spec.schedulingGates" "status.conditions")) }}
{{- end }}) : [])
+ (request.resource.resource == 'jobs' && request.operation == 'CREATE' ?
{{ include "gpu-scheduler.cel.tooLong" (dict "of" "object" "lists" (list "spec.template.spec.schedulingGates")) }} : []))
{{- end }}

{{/* Of what tells whether a pod asks for a share, which is asked of every pod. */}}
{{- define "gpu-scheduler.cel.tooLongToTell" -}}
{{- $within := list "containers" "initContainers" }}
{{- $lists := list "metadata.annotations" "spec.containers" "spec.initContainers" "spec.schedulingGates" }}
({{ include "gpu-scheduler.cel.tooLong" (dict "of" "object" "lists" $lists "most" (dict "spec.schedulingGates" 300)) }}
+ {{ include "gpu-scheduler.cel.tooLongWithin" (dict "within" $within "lists" (list "resources.limits")) }})
{{- end }}

{{/*
Of a pod that asks: what it says, what is looked through before it is made ours, and what the operator compares when it places
it. As in jobs/share_size.py.
*/}}
{{- define "gpu-scheduler.cel.tooLongToShare" -}}
{{- $within := list "containers" "initContainers" }}
{{- $lists := list "metadata.annotations" "metadata.labels" "metadata.ownerReferences" "spec.containers" "spec.initContainers" "spec.volumes" "spec.schedulingGates" }}
{{- $most := dict "metadata.annotations" 500 "metadata.labels" 500 "spec.containers" 64 "spec.initContainers" 64 }}
({{ include "gpu-scheduler.cel.tooLong" (dict "of" "object" "lists" $lists "most" $most) }}
+ {{ include "gpu-scheduler.cel.tooLongWithin" (dict "within" $within "lists" (list "env" "volumeMounts" "ports")) }}
+ [{{ include "gpu-scheduler.cel.entriesWithin" (dict "list" "volumeMounts" "within" $within) }}].filter(n, n <= 1000).map(n,
{{ include "gpu-scheduler.cel.everyContainer" . }}.map(c, has(c.volumeMounts) ? c.volumeMounts.map(m, size(m.mountPath)).sum() : 0).sum()
).filter(n, n > 50000).map(n, 'mountPath: ' + string(n) + ' characters in all volumeMounts, at most 50000 can be looked through')
+ {{ include "gpu-scheduler.cel.tooLongToRead" . }})
{{- end }}

{{/* Of one that is ours: what is read once more. We and others have put something into it meanwhile. */}}
{{- define "gpu-scheduler.cel.tooLongAsOurs" -}}
({{ include "gpu-scheduler.cel.tooLongWithin" (dict "within" (list "containers" "initContainers") "lists" (list "env") "most" (dict "env" 3000)) }}
+ {{ include "gpu-scheduler.cel.tooLongToRead" . }})
{{- end }}

{{/* Texts about annotations whose texts are too long. */}}
{{- define "gpu-scheduler.cel.tooLongToRead" -}}
(!has(object.metadata.annotations) ? [] : ({{ include "gpu-scheduler.cel.words" . }}.filter(k, k in object.metadata.annotations)
+ object.metadata.annotations.filter(k, k.startsWith('nvidia.com/container.'))).filter(k,
size(object.metadata.annotations[k]) > 1800).map(k, 'metadata.annotations[' + k + ']: '
+ string(size(object.metadata.annotations[k])) + ' characters, at most 1800 can be read'))
{{- end }}

{{/* Both as variables, before and after those of gpu-scheduler.cel.reading. */}}
{{- define "gpu-scheduler.cel.unclear" -}}
- name: unclear
  expression: >-
    {{ include "gpu-scheduler.cel.tooLongToTell" . | nindent 4 | trim }}
{{- end }}
{{- define "gpu-scheduler.cel.measured" -}}
- name: tooMuch
  expression: >-
    variables.unclear != [] ? variables.unclear :
    variables.ours ? {{ include "gpu-scheduler.cel.tooLongAsOurs" . | nindent 4 | trim }} :
    variables.asks || 'gpu-scheduler.io/share' in variables.tags ?
    {{ include "gpu-scheduler.cel.tooLongToShare" . | nindent 4 | trim }} : []
{{- end }}

{{/* Annotations whose texts are read. */}}
{{- define "gpu-scheduler.cel.words" -}}
({{ include "gpu-scheduler.cel.asks" . }}.map(k, 'gpu-scheduler.io/' + k) + ['gpu-fraction-container-name', 'gpu-fraction', 'gpu-memory',
'gpu-fraction-num-devices', 'kueue.x-k8s.io/pod-group-total-count', 'leaderworkerset.sigs.k8s.io/size'])
{{- end }}
