/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-NBLOASBI.js";import"./chunk-PZEY5GUQ.js";import"./chunk-NG73KH2L.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
