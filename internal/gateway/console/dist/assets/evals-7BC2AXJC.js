/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-QCUZVT7Y.js";import"./chunk-SWSD4C5N.js";import"./chunk-JVL6K2Y2.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
