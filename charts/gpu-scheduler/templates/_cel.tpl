{{/*
CEL of the admission policies. The API server converts the whole object anew for the conditions, the
validations, the messages and the audit annotations of a policy, which costs far more CPU than the
expressions. So the conditions alone decide whether anything is wrong, and the rest of a policy is
reached only to say what. Conditions cannot use variables: hence these definitions.
*/}}

{{/* Users who may write allocations. The operator is one, within the bounds of _cel_operator.tpl. */}}
{{- define "gpu-scheduler.cel.trusted" -}}
(request.userInfo.username in {{ prepend .Values.admission.trustedUsers (include "gpu-scheduler.username" .) | toJson }})
{{- end }}

{{/*
Whether a request leaves all annotations as they are, as nearly every update does: comparing two maps costs a
fraction of going through their entries, however many somebody put in.
*/}}
{{- define "gpu-scheduler.cel.sameAnnotations" -}}
(request.operation == 'UPDATE' && has(object.metadata.annotations) && has(oldObject.metadata.annotations)
&& dyn(object.metadata.annotations) == dyn(oldObject.metadata.annotations))
{{- end }}

{{/* Annotations with which a pod asks for a share by itself: words of its user, and what they were made into. */}}
{{- define "gpu-scheduler.cel.asks" -}}
['gpu', 'gpu-memory', 'gpu-devices', 'gpu-container', 'gpu-models', 'type', 'priority', 'isolation', 'time-limit', 'gang-size', 'distinct-gpus', 'asked']
{{- end }}

{{/*
Keys of our annotations that a request sets or changes; a template's default gives nothing, and what a new pod
asks for is its user's word.
*/}}
{{- define "gpu-scheduler.cel.written" -}}
(has(object.metadata.annotations) && !{{ include "gpu-scheduler.cel.sameAnnotations" . }} ? object.metadata.annotations.filter(k, k.startsWith('gpu-scheduler.io/')
&& (request.operation == 'CREATE'
? !(object.metadata.annotations[k] == 'void' && size(k) < 64 && k.matches('^gpu-scheduler[.]io/c[0-9]+-devices$'))
&& !(k.substring(17) in {{ include "gpu-scheduler.cel.asks" . }})
: k != 'gpu-scheduler.io/checkpointed-at' && !(has(oldObject.metadata.annotations) && k in oldObject.metadata.annotations
&& oldObject.metadata.annotations[k] == object.metadata.annotations[k]))) : [])
{{- end }}

{{/* Keys of our annotations that a request removes. */}}
{{- define "gpu-scheduler.cel.removed" -}}
(request.operation == 'UPDATE' && has(oldObject.metadata.annotations)
&& !{{ include "gpu-scheduler.cel.sameAnnotations" . }} ? oldObject.metadata.annotations.filter(k, k.startsWith('gpu-scheduler.io/') && k != 'gpu-scheduler.io/checkpointed-at'
&& !(has(object.metadata.annotations) && k in object.metadata.annotations)) : [])
{{- end }}

{{/* Whether a request changes gates; comparing two lists costs a fraction of going through them. */}}
{{- define "gpu-scheduler.cel.changesGates" -}}
(request.operation == 'UPDATE' && has(oldObject.spec.schedulingGates) && !(has(object.spec.schedulingGates)
&& dyn(object.spec.schedulingGates) == dyn(oldObject.spec.schedulingGates)))
{{- end }}

{{/* Whether a request removes our gate. */}}
{{- define "gpu-scheduler.cel.ungates" -}}
({{ include "gpu-scheduler.cel.changesGates" . }}
&& oldObject.spec.schedulingGates.exists(g, g.name == 'gpu-scheduler.io/placement')
&& !(has(object.spec.schedulingGates)
&& object.spec.schedulingGates.exists(g, g.name == 'gpu-scheduler.io/placement')))
{{- end }}

{{/* Whether a request sets the term of a leader on a pod or in a Binding, or another one. */}}
{{- define "gpu-scheduler.cel.setsTerm" -}}
has(object.metadata.annotations) && 'gpu-scheduler.io/term' in object.metadata.annotations
&& (request.operation == 'CREATE' || !(has(oldObject.metadata.annotations)
&& 'gpu-scheduler.io/term' in oldObject.metadata.annotations
&& oldObject.metadata.annotations['gpu-scheduler.io/term'] == object.metadata.annotations['gpu-scheduler.io/term']))
{{- end }}

{{/* The term of who leads. */}}
{{- define "gpu-scheduler.cel.currentTerm" -}}
params.metadata.annotations['gpu-scheduler.io/term']
{{- end }}

{{/* Whether a pod that waits for us chooses its node. */}}
{{- define "gpu-scheduler.cel.placesItself" -}}
(request.operation == 'CREATE' && has(object.spec.nodeName) && object.spec.nodeName != ''
&& has(object.spec.schedulerName) && object.spec.schedulerName == 'gpu-scheduler')
{{- end }}

{{/* Whether a request changes init containers, of which the image alone may be another; see changesGates. */}}
{{- define "gpu-scheduler.cel.changesInits" -}}
(request.operation == 'UPDATE' && (!has(request.subResource) || request.subResource == '') && has(oldObject.spec.initContainers)
&& has(object.spec.initContainers) && dyn(object.spec.initContainers) != dyn(oldObject.spec.initContainers))
{{- end }}

{{/*
Whether a request puts another image in the place of the one that brings the library: of a pod that exists images may be
changed, also after the operator has looked at it.
*/}}
{{- define "gpu-scheduler.cel.swapsLibrary" -}}
({{ include "gpu-scheduler.cel.changesInits" . }}
&& oldObject.spec.initContainers.filter(c, c.name == 'gpu-scheduler-cap').map(c, c.image)
!= object.spec.initContainers.filter(c, c.name == 'gpu-scheduler-cap').map(c, c.image))
{{- end }}

{{/* Whether a pod calls itself part of a GPUJob. */}}
{{- define "gpu-scheduler.cel.labelled" -}}
(has(object.metadata.labels) && 'gpu-scheduler.io/job' in object.metadata.labels)
{{- end }}

{{/* What of NVIDIA_VISIBLE_DEVICES gives no GPU, or the one allocated. */}}
{{- define "gpu-scheduler.cel.harmless" -}}
((!has(e.valueFrom) && (!has(e.value) || e.value in ['', 'none', 'void'])) || (has(e.valueFrom) && has(e.valueFrom.fieldRef)
&& size(e.valueFrom.fieldRef.fieldPath) < 64 && e.valueFrom.fieldRef.fieldPath.matches("^metadata[.]annotations\\['gpu-scheduler[.]io/c[0-9]+-devices'\\]$")))
{{- end }}

{{/* Names of containers of one list that a request adds and for which a condition holds. */}}
{{- define "gpu-scheduler.cel.containers" -}}
({{ .added }} && has(object.spec.{{ .list }}) ? object.spec.{{ .list }}.filter(c, {{ .condition }}).map(c, c.name) : [])
{{- end }}

{{/*
The same of all three lists. Containers are immutable; ephemeral ones are added through a subresource of their
own, beside those that are there already.
*/}}
{{- define "gpu-scheduler.cel.allContainers" -}}
{{- $creates := "request.operation == 'CREATE'" }}
{{- $adds := "has(request.subResource) && request.subResource == 'ephemeralcontainers'" }}
{{- include "gpu-scheduler.cel.containers" (dict "list" "containers" "added" $creates "condition" .) }}
+ {{ include "gpu-scheduler.cel.containers" (dict "list" "initContainers" "added" $creates "condition" .) }}
+ ({{ $adds }} ? [has(oldObject.spec.ephemeralContainers) ? oldObject.spec.ephemeralContainers.map(o, o.name) : []].map(old,
{{ include "gpu-scheduler.cel.containers" (dict "list" "ephemeralContainers" "added" "true" "condition" (printf "!(c.name in old) && %s" .)) }})[0] : [])
{{- end }}

{{/* Names of containers that pick GPUs by hand. */}}
{{- define "gpu-scheduler.cel.picking" -}}
{{- $condition := printf "has(c.env) && c.env.exists(e, e.name == 'NVIDIA_VISIBLE_DEVICES' && !%s)" (include "gpu-scheduler.cel.harmless" .) }}
{{- printf "(%s)" (include "gpu-scheduler.cel.allContainers" $condition) }}
{{- end }}

{{/* Names of containers that would have libgpucap obey them. It does not, where the scheduler set a cap. */}}
{{- define "gpu-scheduler.cel.capping" -}}
({{ include "gpu-scheduler.cel.allContainers" "has(c.env) && c.env.exists(e, e.name.startsWith('GPUCAP_'))" }})
{{- end }}

{{/*
Names of containers that leave the choice to their image, on the runtime that would obey. Where a container requests GPUs
of the device plugin that chooses, unless envFrom sets the variable, which wins over what the plugin says, or the pod has
chosen its node: no plugin may be there, and the kubelet drops what its node does not have. A request for 0 asks no plugin.
The runtime has further RuntimeClasses where NVIDIA's operator makes them.
*/}}
{{- define "gpu-scheduler.cel.silent" -}}
{{- $asks := "has(c.resources) && has(c.resources.limits) && c.resources.limits.exists(r, (r == 'nvidia.com/gpu' || r.startsWith('nvidia.com/gpu.') || r.startsWith('nvidia.com/mig-')) && quantity(string(c.resources.limits[r])).isGreaterThan(quantity('0')))" }}
{{- $places := "has(object.spec.nodeName) && object.spec.nodeName != ''" }}
{{- $overrules := "has(c.envFrom) && !c.envFrom.all(f, has(f.prefix) && f.prefix != '' && (size(f.prefix) > 22 || !'NVIDIA_VISIBLE_DEVICES'.startsWith(f.prefix)))" }}
{{- $condition := printf "!(has(c.env) && c.env.exists(e, e.name == 'NVIDIA_VISIBLE_DEVICES')) && (!(%s) || (%s) || (%s))" $asks $places $overrules }}
{{- $classes := list .Values.scheduling.runtimeClass "nvidia" "nvidia-cdi" "nvidia-legacy" | uniq | toJson }}
{{- printf "(has(object.spec.runtimeClassName) && object.spec.runtimeClassName in %s ? %s : [])" $classes (include "gpu-scheduler.cel.allContainers" $condition) }}
{{- end }}
