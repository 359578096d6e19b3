{{/*
CEL that confines the operator's own account to what its code does; each definition is an expression that
holds for the writes of that code. Objects are looked at as maps (dyn), so that a field which nobody here has
heard of counts as changed.
*/}}

{{/* Whether the operator asks; cheap, and the first thing that any policy about it looks at. */}}
{{- define "gpu-scheduler.cel.byOperator" -}}
(request.userInfo.username == {{ include "gpu-scheduler.username" . | squote }})
{{- end }}

{{/* A map at .path differs from the old one in those entries alone whose key k fulfils .but. */}}
{{- define "gpu-scheduler.cel.sameBut" -}}
((has(object.{{ .path }}) ? dyn(object.{{ .path }}) : {}).all(k, {{ .but }} || (has(oldObject.{{ .path }})
&& k in dyn(oldObject.{{ .path }}) && dyn(oldObject.{{ .path }})[k] == dyn(object.{{ .path }})[k]))
&& (has(oldObject.{{ .path }}) ? dyn(oldObject.{{ .path }}) : {}).all(k, {{ .but }}
|| (has(object.{{ .path }}) && k in dyn(object.{{ .path }}))))
{{- end }}

{{/* Metadata as it was but for the entries .of, a list in CEL, and what the API server itself keeps. */}}
{{- define "gpu-scheduler.cel.sameMeta" -}}
{{- $but := printf "k in %s + ['managedFields', 'resourceVersion', 'generation', 'deletionTimestamp', 'deletionGracePeriodSeconds']" .of }}
{{- include "gpu-scheduler.cel.sameBut" (dict "path" "metadata" "but" $but) }}
{{- end }}

{{/* Labels or annotations (.of) as they were, but for ours. */}}
{{- define "gpu-scheduler.cel.sameForeign" -}}
{{- include "gpu-scheduler.cel.sameBut" (dict "path" (printf "metadata.%s" .of) "but" "k.startsWith('gpu-scheduler.io/')") }}
{{- end }}

{{/* An object (.of) belongs to a GPUJob, by its controller reference. */}}
{{- define "gpu-scheduler.cel.ofGPUJob" -}}
(has({{ .of }}.metadata.ownerReferences) && {{ .of }}.metadata.ownerReferences.exists(o, o.kind == 'GPUJob'
&& o.apiVersion.startsWith('gpu-scheduler.io/') && has(o.controller) && o.controller && {{ .name | default "true" }}))
{{- end }}

{{/* A pod spec (.of) waits for us. */}}
{{- define "gpu-scheduler.cel.waitsForUs" -}}
((has({{ .of }}.schedulerName) && {{ .of }}.schedulerName == 'gpu-scheduler')
|| (has({{ .of }}.schedulingGates) && {{ .of }}.schedulingGates.exists(g, g.name == 'gpu-scheduler.io/placement')))
{{- end }}

{{/* The pod as it was is a Job's, or asks by itself, and waits for us or was placed by us. */}}
{{- define "gpu-scheduler.cel.ourPod" -}}
(((has(oldObject.metadata.ownerReferences) && oldObject.metadata.ownerReferences.exists(o, o.kind == 'Job'
&& o.apiVersion == 'batch/v1' && has(o.controller) && o.controller))
|| (has(oldObject.metadata.annotations) && 'gpu-scheduler.io/asked' in oldObject.metadata.annotations))
&& ({{ include "gpu-scheduler.cel.waitsForUs" (dict "of" "oldObject.spec") }}
|| (has(oldObject.metadata.annotations) && 'gpu-scheduler.io/allocation' in oldObject.metadata.annotations)))
{{- end }}

{{/*
A placing write says by its label which of the two it is (.path), and whose (the term): so the policy on terms,
which has a parameter and cannot look at everything, sees all of them.
*/}}
{{- define "gpu-scheduler.cel.fenced" -}}
(has(object.metadata.labels) && 'gpu-scheduler.io/path' in object.metadata.labels
&& object.metadata.labels['gpu-scheduler.io/path'] == '{{ .path }}' && {{ include "gpu-scheduler.cel.setsTerm" . }})
{{- end }}

{{/* The gate path: annotations of ours, our gate off when it is the last, a pin to a node. */}}
{{- define "gpu-scheduler.cel.releases" -}}
({{ include "gpu-scheduler.cel.ourPod" . }}
&& {{ include "gpu-scheduler.cel.sameMeta" (dict "of" "['annotations', 'labels']") }}
&& {{ include "gpu-scheduler.cel.sameForeign" (dict "of" "annotations") }}
&& {{ include "gpu-scheduler.cel.sameBut" (dict "path" "metadata.labels" "but" "k == 'gpu-scheduler.io/path'") }}
&& (!{{ include "gpu-scheduler.cel.ungates" . }} || {{ include "gpu-scheduler.cel.fenced" (dict "path" "gate") }})
&& {{ include "gpu-scheduler.cel.sameBut" (dict "path" "spec" "but" "k in ['schedulingGates', 'affinity', 'nodeSelector']") }}
&& (!has(oldObject.spec.schedulingGates) || oldObject.spec.schedulingGates.all(g, g.name == 'gpu-scheduler.io/placement')
|| (has(object.spec.schedulingGates) && dyn(object.spec.schedulingGates) == dyn(oldObject.spec.schedulingGates))))
{{- end }}

{{/* A pod's conditions (of .of) without those that we write: of one without a node also why it has none. */}}
{{- define "gpu-scheduler.cel.foreignConditions" -}}
(has({{ .of }}.status.conditions) ? dyn({{ .of }}.status.conditions).filter(c, c.type != 'DisruptionTarget'
&& !c.type.startsWith('gpu-scheduler.io/') && !(c.type == 'PodScheduled' && c.status == 'False'
&& (!has(oldObject.spec.nodeName) || oldObject.spec.nodeName == ''))) : [])
{{- end }}

{{/* Why a pod failed, or what is to be said of one that waits for us, whoever made it, or that we placed. */}}
{{- define "gpu-scheduler.cel.marks" -}}
(({{ include "gpu-scheduler.cel.waitsForUs" (dict "of" "oldObject.spec") }}
|| (has(oldObject.metadata.annotations) && 'gpu-scheduler.io/allocation' in oldObject.metadata.annotations))
&& {{ include "gpu-scheduler.cel.sameMeta" (dict "of" "[]") }}
&& {{ include "gpu-scheduler.cel.sameBut" (dict "path" "status" "but" "k == 'conditions'") }}
&& {{ include "gpu-scheduler.cel.foreignConditions" (dict "of" "object") }}
== {{ include "gpu-scheduler.cel.foreignConditions" (dict "of" "oldObject") }})
{{- end }}

{{/* A replica says on its own pod, to which its token is bound, that it leads. */}}
{{- define "gpu-scheduler.cel.leads" -}}
(request.namespace == '{{ .Release.Namespace }}' && has(request.userInfo.extra)
&& 'authentication.kubernetes.io/pod-name' in request.userInfo.extra
&& request.userInfo.extra['authentication.kubernetes.io/pod-name'][0] == object.metadata.name
&& {{ include "gpu-scheduler.cel.sameBut" (dict "path" "spec" "but" "false") }}
&& {{ include "gpu-scheduler.cel.sameMeta" (dict "of" "['labels']") }}
&& {{ include "gpu-scheduler.cel.sameBut" (dict "path" "metadata.labels" "but" "k == 'gpu-scheduler.io/leader'") }})
{{- end }}

{{/* It tells an agent of its node: one annotation on the agent's pod, as runtime/binding/node_orders.py writes it. */}}
{{- define "gpu-scheduler.cel.tells" -}}
(request.namespace == '{{ .Release.Namespace }}' && has(oldObject.metadata.labels)
&& oldObject.metadata.labels[?'gpu-scheduler.io/component'].orValue('') == 'agent'
&& {{ include "gpu-scheduler.cel.sameBut" (dict "path" "spec" "but" "false") }}
&& {{ include "gpu-scheduler.cel.sameMeta" (dict "of" "['annotations']") }}
&& {{ include "gpu-scheduler.cel.sameBut" (dict "path" "metadata.annotations" "but" "k == 'gpu-scheduler.io/orders'") }})
{{- end }}

{{/* A holder as jobs/placeholder.py makes it, after the defaults of the API server. */}}
{{- define "gpu-scheduler.cel.holder" -}}
{{- if .Values.holders.enabled -}}
(request.namespace == '{{ .Release.Namespace }}' && object.metadata.name.startsWith('gpu-holder-')
&& has(object.metadata.labels) && object.metadata.labels.all(k, k in ['gpu-scheduler.io/component', 'gpu-scheduler.io/holds'])
&& object.metadata.labels[?'gpu-scheduler.io/component'].orValue('') == 'holder'
&& (!has(object.metadata.annotations) || object.metadata.annotations.all(k, !k.startsWith('gpu-scheduler.io/')))
&& (!has(object.metadata.ownerReferences) || object.metadata.ownerReferences.all(o, o.kind == 'Deployment'
&& o.name == '{{ include "gpu-scheduler.fullname" . }}'))
&& dyn(object.spec).all(k, k in ['affinity', 'tolerations', 'automountServiceAccountToken', 'enableServiceLinks',
'terminationGracePeriodSeconds', 'securityContext', 'containers', 'priorityClassName', 'priority', 'preemptionPolicy',
'imagePullSecrets', 'restartPolicy', 'dnsPolicy', 'serviceAccountName', 'serviceAccount', 'schedulerName'])
&& object.spec.schedulerName == 'default-scheduler' && has(object.spec.automountServiceAccountToken)
&& !object.spec.automountServiceAccountToken && object.spec.containers.size() == 1
&& object.spec.containers.all(c, dyn(c).all(k, k in ['name', 'image', 'command', 'resources', 'securityContext',
'imagePullPolicy', 'terminationMessagePath', 'terminationMessagePolicy'])
&& c.image == '{{ include "gpu-scheduler.holderImage" . }}'
{{- if .Values.holders.image }}
&& !has(c.command)
{{- else }}
&& has(c.command) && c.command == ['/opt/venv/bin/python', '-c', 'import signal; signal.sigwait({signal.SIGTERM})']
{{- end }}
&& has(c.securityContext) && has(c.securityContext.allowPrivilegeEscalation)
&& !c.securityContext.allowPrivilegeEscalation && has(c.securityContext.capabilities)
&& !has(c.securityContext.capabilities.add)))
{{- else -}}
false
{{- end }}
{{- end }}

{{/* What the operator may write of pods, their status and their ephemeral containers. */}}
{{- define "gpu-scheduler.cel.operatorPod" -}}
(request.operation == 'CREATE' ? (has(request.dryRun) && request.dryRun) || {{ include "gpu-scheduler.cel.holder" . }} :
!has(request.subResource) || request.subResource == '' ?
{{ include "gpu-scheduler.cel.releases" . }} || {{ include "gpu-scheduler.cel.leads" . }}
|| {{ include "gpu-scheduler.cel.tells" . }} :
request.subResource == 'status' && {{ include "gpu-scheduler.cel.marks" . }})
{{- end }}

{{/*
A Binding sets annotations and labels of its pod: annotations of ours, the label that says which path it took, and
those of the node's place, which the API server adds itself (PodTopologyLabels).
*/}}
{{- define "gpu-scheduler.cel.operatorBinding" -}}
({{ include "gpu-scheduler.cel.fenced" (dict "path" "bind") }}
&& object.metadata.labels.all(k, k == 'gpu-scheduler.io/path' || k.startsWith('topology.kubernetes.io/'))
&& object.metadata.annotations.all(k, k.startsWith('gpu-scheduler.io/'))
&& ('gpu-scheduler.io/allocation' in object.metadata.annotations || (has(request.dryRun) && request.dryRun))
&& (!has(object.target.kind) || object.target.kind == 'Node'))
{{- end }}

{{/* A Job of a GPUJob, whose pods wait for us. */}}
{{- define "gpu-scheduler.cel.operatorJob" -}}
{{- $labels := .Values.admission.operator.namespaceLabels }}
(request.operation == 'CREATE' ?
{{ include "gpu-scheduler.cel.ofGPUJob" (dict "of" "object" "name" "(object.metadata.name == o.name || object.metadata.name.startsWith(o.name + '-'))") }}
&& has(object.metadata.labels) && 'gpu-scheduler.io/job' in object.metadata.labels
&& has(object.spec.completionMode) && object.spec.completionMode == 'Indexed' && has(object.spec.podFailurePolicy)
&& has(object.spec.template.spec.restartPolicy) && object.spec.template.spec.restartPolicy == 'Never'
&& !has(object.spec.template.spec.nodeName)
&& {{ include "gpu-scheduler.cel.waitsForUs" (dict "of" "object.spec.template.spec") }}
&& !(request.namespace in {{ append .Values.admission.operator.deniedNamespaces .Release.Namespace | toJson | replace "\"" "'" }})
{{- range $key := keys $labels | sortAlpha }}
&& has(namespaceObject.metadata.labels) && namespaceObject.metadata.labels[?'{{ $key }}'].orValue('') == '{{ get $labels $key }}'
{{- end }} :
{{ include "gpu-scheduler.cel.ofGPUJob" (dict "of" "oldObject") }} && (request.operation == 'DELETE' || (
{{ include "gpu-scheduler.cel.sameBut" (dict "path" "spec" "but" "k in ['parallelism', 'completions', 'suspend']") }}
&& {{ include "gpu-scheduler.cel.sameMeta" (dict "of" "['labels', 'annotations']") }}
&& {{ include "gpu-scheduler.cel.sameForeign" (dict "of" "labels") }}
&& {{ include "gpu-scheduler.cel.sameForeign" (dict "of" "annotations") }})))
{{- end }}

{{/* The results of a segment of a sweep. */}}
{{- define "gpu-scheduler.cel.operatorConfigMap" -}}
{{- $name := "object.metadata.name.startsWith(o.name + '-results-')" }}
({{ include "gpu-scheduler.cel.ofGPUJob" (dict "of" "object" "name" $name) }}
&& !has(object.binaryData) && has(object.data) && size(object.data) <= 1 && object.data.all(k, k == 'trials')
&& (request.operation == 'CREATE' || ({{ include "gpu-scheduler.cel.ofGPUJob" (dict "of" "oldObject" "name" $name) }}
&& {{ include "gpu-scheduler.cel.sameMeta" (dict "of" "[]") }})))
{{- end }}

{{/* Names for the pods of a gang, and no way to anybody's port. */}}
{{- define "gpu-scheduler.cel.operatorService" -}}
({{ include "gpu-scheduler.cel.ofGPUJob" (dict "of" "object" "name" "object.metadata.name == o.name") }}
&& object.spec.clusterIP == 'None' && !has(object.spec.ports) && !has(object.spec.externalIPs)
&& object.spec.type == 'ClusterIP' && has(object.spec.selector) && size(object.spec.selector) <= 1 && object.spec.selector.all(k, k == 'gpu-scheduler.io/job'))
{{- end }}

{{/* What the operator may write beside pods and Bindings. */}}
{{- define "gpu-scheduler.cel.operatorWrite" -}}
(request.resource.resource == 'pods' ? ({{ include "gpu-scheduler.cel.ourPod" . }}
&& has(oldObject.metadata.annotations) && 'gpu-scheduler.io/allocation' in oldObject.metadata.annotations)
|| (request.namespace == '{{ .Release.Namespace }}' && has(oldObject.metadata.labels)
&& oldObject.metadata.labels[?'gpu-scheduler.io/component'].orValue('') == 'holder') :
request.resource.resource == 'jobs' ? {{ include "gpu-scheduler.cel.operatorJob" . }} :
request.resource.resource == 'configmaps' ? {{ include "gpu-scheduler.cel.operatorConfigMap" . }} :
request.resource.resource == 'services' ? {{ include "gpu-scheduler.cel.operatorService" . }} :
request.resource.resource == 'podtemplates' ? has(request.dryRun) && request.dryRun :
request.resource.resource == 'leases' ? object.metadata.name == 'gpu-scheduler-leader' :
request.resource.resource == 'limitranges' ? object.metadata.name == 'gpu-scheduler-leader'
&& (!has(object.spec.limits) || dyn(object.spec.limits) == null || object.spec.limits.size() == 0) :
request.resource.resource == 'gpujobs' && has(oldObject.spec.ttlSecondsAfterFinished)
&& has(oldObject.status) && has(oldObject.status.phase)
&& oldObject.status.phase in ['Succeeded', 'Failed'])
{{- end }}
