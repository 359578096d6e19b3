{{/*
CEL of the policies for pods that ask for a share by themselves. They do what jobs/share.py does, and tests compare
the two. Definitions are expressions over `object`; N is a container's number, from 64 on an init container's.
*/}}

{{/* Amounts in the limits of containers. */}}
{{- define "gpu-scheduler.cel.amounts" -}}
['gpu-scheduler.io/milligpu', 'gpu-scheduler.io/gpu-mib']
{{- end }}

{{/* Whether a container c says how much it wants. */}}
{{- define "gpu-scheduler.cel.limited" -}}
(has(c.resources) && has(c.resources.limits) && {{ include "gpu-scheduler.cel.amounts" . }}.exists(k, k in c.resources.limits))
{{- end }}

{{/* Whether the pod says how much one of its containers wants. */}}
{{- define "gpu-scheduler.cel.noted" -}}
((has(object.metadata.labels) && 'gpu-scheduler.io/gpu' in object.metadata.labels)
|| (has(object.metadata.annotations) && ('gpu-scheduler.io/gpu' in object.metadata.annotations
|| 'gpu-scheduler.io/gpu-memory' in object.metadata.annotations)))
{{- end }}

{{/* Whether it was made ours before: by somebody who rendered it, or in another round of admission. */}}
{{- define "gpu-scheduler.cel.isOurs" -}}
(has(object.metadata.annotations) && object.metadata.annotations.exists(k, k.matches('^gpu-scheduler[.]io/c[0-9]+-devices$')))
{{- end }}

{{/* Whether a pod asks and is not ours yet. */}}
{{- define "gpu-scheduler.cel.asksForAShare" -}}
(({{ include "gpu-scheduler.cel.noted" . }}
|| object.spec.containers.exists(c, {{ include "gpu-scheduler.cel.limited" . }})
|| (has(object.spec.initContainers) && object.spec.initContainers.exists(c, has(c.restartPolicy)
&& c.restartPolicy == 'Always' && {{ include "gpu-scheduler.cel.limited" . }})))
&& !{{ include "gpu-scheduler.cel.isOurs" . }})
{{- end }}

{{/* All containers in one list. */}}
{{- define "gpu-scheduler.cel.everyContainer" -}}
(has(object.spec.initContainers) ? object.spec.initContainers + object.spec.containers : object.spec.containers)
{{- end }}

{{/* Whether a pod has more containers or variables than can be looked through. */}}
{{- define "gpu-scheduler.cel.isTooLarge" -}}
(object.spec.containers.size() > 64 || (has(object.spec.initContainers) && object.spec.initContainers.size() > 64)
|| {{ include "gpu-scheduler.cel.everyContainer" . }}.map(c, 1 + (has(c.env) ? c.env.size() : 0)).sum() > 2000)
{{- end }}

{{/* Variables that the scheduler sets. */}}
{{- define "gpu-scheduler.cel.reservedVariables" -}}
['NVIDIA_VISIBLE_DEVICES', 'GPU_MEMORY_LIMIT_MIB', 'GPUJOB_NAME', 'GPUJOB_INDEX', 'GPUJOB_COMPLETIONS', 'GPUJOB_ROLE',
'GPUJOB_WORLD_SIZE', 'GPUJOB_HOSTS']
{{- end }}

{{/* Names of containers that set one of these by themselves. */}}
{{- define "gpu-scheduler.cel.setsReserved" -}}
{{ include "gpu-scheduler.cel.everyContainer" . }}.filter(c, has(c.env) && c.env.exists(e, e.name.startsWith('GPUCAP_')
|| e.name in {{ include "gpu-scheduler.cel.reservedVariables" . }})).map(c, c.name)
{{- end }}

{{/* Names of containers with mounts in places, or of volumes, that are ours. */}}
{{- define "gpu-scheduler.cel.mountsReserved" -}}
{{ include "gpu-scheduler.cel.everyContainer" . }}.filter(c, has(c.volumeMounts) && c.volumeMounts.exists(m,
m.name.matches('^gpu-scheduler-c[0-9]+$')
|| m.mountPath.matches('(^|/)[.][.]?(/|$)|//')
|| ('/' + m.mountPath + '/').replace('//', '/').startsWith('/etc/gpu-scheduler/')
|| ({{ include "gpu-scheduler.cel.isCapped" . }} && (m.name == 'gpu-scheduler-cap'
|| ('/' + m.mountPath + '/').replace('//', '/').matches('^/(etc/ld[.]so[.]preload|opt/gpu-scheduler)/')
|| (('/' + m.mountPath + '/').replace('//', '/') == '/opt/' && has(m.readOnly) && m.readOnly))))).map(c, c.name)
{{- end }}

{{/* Names of volumes and init containers that are ours. */}}
{{- define "gpu-scheduler.cel.namesReserved" -}}
((has(object.spec.volumes) ? object.spec.volumes.filter(v, v.name.matches('^gpu-scheduler-c[0-9]+$')
|| (v.name == 'gpu-scheduler-cap' && {{ include "gpu-scheduler.cel.isCapped" . }})).map(v, v.name) : [])
+ ({{ include "gpu-scheduler.cel.isCapped" . }} ?
{{ include "gpu-scheduler.cel.everyContainer" . }}.filter(c, c.name == 'gpu-scheduler-cap').map(c, c.name) : []))
{{- end }}

{{/* Names of containers that ask the device plugin. */}}
{{- define "gpu-scheduler.cel.asksThePlugin" -}}
{{ include "gpu-scheduler.cel.everyContainer" . }}.filter(c, has(c.resources) && has(c.resources.limits)
&& c.resources.limits.exists(k, k.matches('^nvidia[.]com/(gpu([.].+)?|mig-.+)$'))).map(c, c.name)
{{- end }}

{{/* Whether somebody else is to place it. */}}
{{- define "gpu-scheduler.cel.isPlacedByOthers" -}}
((has(object.spec.nodeName) && object.spec.nodeName != '') || (has(object.spec.schedulerName)
&& !(object.spec.schedulerName in ['', 'default-scheduler', 'gpu-scheduler'])))
{{- end }}

{{/* Whether it may take too long to end. */}}
{{- define "gpu-scheduler.cel.endsLate" -}}
(has(object.spec.terminationGracePeriodSeconds) && object.spec.terminationGracePeriodSeconds > 3600)
{{- end }}

{{/* Whether it names a container that it does not have. */}}
{{- define "gpu-scheduler.cel.namesNobody" -}}
({{ include "gpu-scheduler.cel.noted" . }} && has(object.metadata.annotations)
&& 'gpu-scheduler.io/gpu-container' in object.metadata.annotations
&& !object.spec.containers.exists(c, c.name == object.metadata.annotations['gpu-scheduler.io/gpu-container'])
&& !(has(object.spec.initContainers) && object.spec.initContainers.exists(c, has(c.restartPolicy) && c.restartPolicy == 'Always'
&& c.name == object.metadata.annotations['gpu-scheduler.io/gpu-container'])))
{{- end }}

{{/* Whether a pod can be made ours: what is in the way is said by the policy that refuses it. */}}
{{- define "gpu-scheduler.cel.canBeOurs" -}}
(!{{ include "gpu-scheduler.cel.isTooLarge" . }} && !{{ include "gpu-scheduler.cel.isPlacedByOthers" . }}
&& !{{ include "gpu-scheduler.cel.endsLate" . }} && !{{ include "gpu-scheduler.cel.namesNobody" . }}
&& {{ include "gpu-scheduler.cel.setsReserved" . }} == [] && {{ include "gpu-scheduler.cel.mountsReserved" . }} == []
&& {{ include "gpu-scheduler.cel.namesReserved" . }} == [] && {{ include "gpu-scheduler.cel.asksThePlugin" . }} == []
&& !(has(object.metadata.annotations) && 'gpu-scheduler.io/asked' in object.metadata.annotations))
{{- end }}

{{/* Whether libgpucap is put into it. */}}
{{- define "gpu-scheduler.cel.isCapped" -}}
{{- if .Values.isolation.interposer -}}
((has(object.metadata.annotations) && 'gpu-scheduler.io/isolation' in object.metadata.annotations ?
object.metadata.annotations['gpu-scheduler.io/isolation'] : '{{ .Values.isolation.default }}') == 'interposer')
{{- else -}}
false
{{- end }}
{{- end }}

{{/* Whether kube-scheduler has to see it, as jobs/write_path.py says. */}}
{{- define "gpu-scheduler.cel.isGated" -}}
(!(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller))
|| (has(object.spec.volumes) && object.spec.volumes.exists(v, has(v.persistentVolumeClaim) || has(v.ephemeral)
|| has(v.gcePersistentDisk) || has(v.awsElasticBlockStore) || has(v.iscsi) || has(v.rbd)))
|| (has(object.spec.topologySpreadConstraints) && object.spec.topologySpreadConstraints.size() > 0)
|| (has(object.spec.affinity) && ((has(object.spec.affinity.podAffinity)
&& has(object.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution)
&& object.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.size() > 0)
|| (has(object.spec.affinity.podAntiAffinity)
&& has(object.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution)
&& object.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.size() > 0)))
|| (has(object.spec.resourceClaims) && object.spec.resourceClaims.size() > 0)
|| {{ include "gpu-scheduler.cel.everyContainer" . }}.exists(c, has(c.ports) && c.ports.exists(p,
(has(p.hostPort) && p.hostPort > 0) || (has(object.spec.hostNetwork) && object.spec.hostNetwork))))
{{- end }}

{{/* A variable with the value of an annotation (.of, in CEL) of container n. */}}
{{- define "gpu-scheduler.cel.fromAnnotation" -}}
dyn({"name": dyn("{{ .name }}"), "valueFrom": dyn({"fieldRef": dyn({"fieldPath": "metadata.annotations['gpu-scheduler.io/c" + string(n) + "-{{ .of }}']"})})})
{{- end }}

{{/* A file of container n with the value of an annotation. */}}
{{- define "gpu-scheduler.cel.fileOf" -}}
dyn({"path": dyn("{{ .path }}"), "fieldRef": dyn({"fieldPath": "metadata.annotations['gpu-scheduler.io/c" + string(n) + "-{{ .of }}']"})})
{{- end }}

{{/* A mount of the library's volume. */}}
{{- define "gpu-scheduler.cel.capMount" -}}
dyn({"name": dyn("gpu-scheduler-cap"), "mountPath": dyn("{{ .path }}"), "subPath": dyn({{ .sub }}){{ if .readOnly }}, "readOnly": dyn(true){{ end }}})
{{- end }}

{{/*
Rules about what a pod asks for. Each holds of values that are bound to names: its own annotations (.notes), labels
(.tags), the annotation `asked` and what it says, container by container (.parts) and by key. The condition of the
policy and its validations use the same ones.
*/}}
{{- define "gpu-scheduler.cel.ruleReadable" -}}
{{ .asked }}.matches('^[0-9]+:[^=,:;]+=[^=,;]*(,[^=,:;]+=[^=,;]*)*(;[0-9]+:[^=,:;]+=[^=,;]*(,[^=,:;]+=[^=,;]*)*)*$')
{{- end }}
{{- define "gpu-scheduler.cel.partsOf" -}}
{{ .asked }}.split(';').map(p, p.split(':')[1].split(','))
{{- end }}
{{- define "gpu-scheduler.cel.said" -}}
{{ .parts }}.map(p, p.filter(w, w.startsWith('gpu-scheduler.io/{{ .key }}=')).map(w, w.substring({{ add 18 (len .key) }}))).flatten()
{{- end }}
{{- define "gpu-scheduler.cel.ruleOneWay" -}}
{{ .parts }}.all(p, p.filter(w, w.matches('^gpu-scheduler[.]io/(gpu|gpu-memory|milligpu|gpu-mib)=')).size() == 1
&& p.all(w, w.matches('^gpu-scheduler[.]io/(gpu|gpu-memory|milligpu|gpu-mib|gpu-devices)=')))
{{- end }}
{{- define "gpu-scheduler.cel.ruleContainers" -}}
{{ .parts }}.size() <= 16
{{- end }}
{{- define "gpu-scheduler.cel.ruleOnePlace" -}}
!{{ .shares }}.exists(g, g.contains('|'))
{{- end }}
{{- define "gpu-scheduler.cel.ruleShare" -}}
{{ .shares }}.all(g, g.contains('|') || (g.matches('^[0-9]{1,9}([.][0-9]{1,9})?$') && double(g) > 0.0 && double(g) <= 1024.0
&& (double(g) > 1.0 ? g.matches('^[0-9]+([.]0+)?$') : g.matches('^[0-9]+([.][0-9]{1,3}0*)?$'))))
{{- end }}
{{- define "gpu-scheduler.cel.ruleMemory" -}}
{{ .memories }}.all(m, isQuantity(m) && quantity(m).compareTo(quantity('1Mi')) >= 0 && quantity(m).compareTo(quantity('16Ti')) <= 0)
{{- end }}
{{- define "gpu-scheduler.cel.ruleDevices" -}}
({{ .counts }} == [] || ({{ .counts }}.all(n, n.matches('^[1-9][0-9]?$') && int(n) <= 64)
&& {{ .shares }}.all(g, !g.matches('^[0-9]{1,9}([.][0-9]{1,9})?$') || double(g) < 1.0)))
{{- end }}
{{- define "gpu-scheduler.cel.ruleMilli" -}}
{{ .millis }}.all(n, n.matches('^[1-9][0-9]{0,6}$') && (int(n) <= 1000 || (int(n) % 1000 == 0 && int(n) <= 1024000)))
{{- end }}
{{- define "gpu-scheduler.cel.ruleMib" -}}
{{ .mibs }}.all(n, n.matches('^[1-9][0-9]{0,7}$') && int(n) <= 16777216)
{{- end }}
{{- define "gpu-scheduler.cel.ruleType" -}}
{{ .notes }}[?'gpu-scheduler.io/type'].orValue('training') in ['training', 'interactive']
{{- end }}
{{- define "gpu-scheduler.cel.ruleIsolation" -}}
{{ .notes }}[?'gpu-scheduler.io/isolation'].orValue('framework') in ['interposer', 'framework']
{{- end }}
{{- define "gpu-scheduler.cel.rulePriority" -}}
{{ .notes }}[?'gpu-scheduler.io/priority'].orValue('0').matches('^(0|[1-9][0-9]?|100)$')
{{- end }}
{{- define "gpu-scheduler.cel.ruleTimeLimit" -}}
({{ .notes }}[?'gpu-scheduler.io/time-limit'].orValue('1').matches('^[1-9][0-9]{0,9}$')
&& int({{ .notes }}[?'gpu-scheduler.io/time-limit'].orValue('1')) <= 2147483647)
{{- end }}
{{- define "gpu-scheduler.cel.ruleModels" -}}
(!('gpu-scheduler.io/gpu-models' in {{ .notes }}) || [{{ .notes }}['gpu-scheduler.io/gpu-models'].split(',').filter(m, m.trim() != '')].all(all,
all.size() > 0 && all.size() <= 16))
{{- end }}
{{- define "gpu-scheduler.cel.ruleGang" -}}
('gpu-scheduler.io/gang' in {{ .tags }} ? {{ .notes }}[?'gpu-scheduler.io/gang-size'].orValue('').matches('^([1-9][0-9]{0,2}|1000)$')
: !('gpu-scheduler.io/gang-size' in {{ .notes }}))
{{- end }}

{{/* Whether what a pod of ours asks for can be meant: all rules, in an expression that needs no variables. */}}
{{- define "gpu-scheduler.cel.canBeMeant" -}}
{{- $all := dict "asked" "asked" "parts" "parts" "notes" "notes" "tags" "tags" "shares" "shares" "memories" "memories" "counts" "counts" "millis" "millis" "mibs" "mibs" }}
[has(object.metadata.annotations) ? object.metadata.annotations : {}].all(notes, [has(object.metadata.labels) ? object.metadata.labels : {}].all(tags,
{{- range $rule := list "Type" "Isolation" "Priority" "TimeLimit" "Models" "Gang" }}
{{ include (printf "gpu-scheduler.cel.rule%s" $rule) $all }} &&
{{- end }}
[notes[?'gpu-scheduler.io/asked'].orValue('')].all(asked, {{ include "gpu-scheduler.cel.ruleReadable" $all }}
&& [{{ include "gpu-scheduler.cel.partsOf" $all }}].all(parts,
{{ include "gpu-scheduler.cel.ruleOneWay" $all }} && {{ include "gpu-scheduler.cel.ruleContainers" $all }}
&& [{{ include "gpu-scheduler.cel.said" (set $all "key" "gpu") }}].all(shares,
{{ include "gpu-scheduler.cel.ruleOnePlace" $all }} && {{ include "gpu-scheduler.cel.ruleShare" $all }}
&& [{{ include "gpu-scheduler.cel.said" (set $all "key" "gpu-devices") }}].all(counts, {{ include "gpu-scheduler.cel.ruleDevices" $all }}))
&& [{{ include "gpu-scheduler.cel.said" (set $all "key" "gpu-memory") }}].all(memories, {{ include "gpu-scheduler.cel.ruleMemory" $all }})
&& [{{ include "gpu-scheduler.cel.said" (set $all "key" "milligpu") }}].all(millis, {{ include "gpu-scheduler.cel.ruleMilli" $all }})
&& [{{ include "gpu-scheduler.cel.said" (set $all "key" "gpu-mib") }}].all(mibs, {{ include "gpu-scheduler.cel.ruleMib" $all }})))))
{{- end }}
