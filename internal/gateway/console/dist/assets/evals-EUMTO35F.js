/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-6KYXJQKF.js";import"./chunk-3G3YPLMM.js";import"./chunk-QOXSNZ4G.js";import"./chunk-SWGYV5IY.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
